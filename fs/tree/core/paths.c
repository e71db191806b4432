#include "fs/tree/core/tree_core.h"

#include <assert.h>
#include <string.h>

/* Return the placeholder at the start of a component, or NULL. */
static const struct fs_placeholder *placeholder_at(const struct fs_table *table,
                                                   const char *component)
{
    if (*component != '<')
        return NULL;
    for (size_t i = 0; i < table->n_placeholders; i++) {
        if (gguf_text_starts_with(component, table->placeholders[i].text))
            return &table->placeholders[i];
    }
    assert(false);
    return NULL;
}

const struct fs_subjects *fs_path_subjects(const struct fs_table *table, const char *path_template)
{
    const char *start = strchr(path_template, '<');

    return start ? placeholder_at(table, start)->subjects : table->subjects[0];
}

void fs_path_expand(const struct fs_tree *tree, const char *path_template, size_t template_bytes,
                    const void *subject, char path[FS_PATH_BYTES])
{
    const char *end = path_template + template_bytes;
    size_t length = 0;

    while (path_template < end) {
        const size_t component_bytes = strcspn(path_template, "/");
        const struct fs_placeholder *placeholder = placeholder_at(tree->table, path_template);
        char suffix[FS_NAME_BYTES], file_name[FS_NAME_BYTES];

        assert(component_bytes < sizeof suffix && length + 1 + FS_NAME_BYTES <= FS_PATH_BYTES);
        memcpy(suffix, path_template, component_bytes);
        suffix[component_bytes] = '\0';
        if (!placeholder)
            memcpy(file_name, suffix, component_bytes + 1);
        else if (placeholder->name)
            fs_name_escape(placeholder->name(subject), suffix + strlen(placeholder->text),
                           file_name);
        else
            placeholder->write(tree, subject, suffix + strlen(placeholder->text), file_name);
        if (length > 0)
            path[length++] = '/';
        memcpy(path + length, file_name, strlen(file_name));
        length += strlen(file_name);
        path_template += component_bytes + 1;
    }
    path[length] = '\0';
}
