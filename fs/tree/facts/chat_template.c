#include "fs/tree/facts/chat_template.h"

#include "fs/tree/core/tree_core.h"

#include <string.h>

static const struct gguf_key *find_default(const struct fs_tree *tree)
{
    const struct gguf_key *key = gguf_find_key(tree->model, FS_TEMPLATE_KEY);

    return key && key->value.type == GGUF_STRING ? key : NULL;
}

bool fs_chat_template_applies(const struct fs_tree *tree, const void *subject)
{
    return find_default(tree) != NULL;
}

struct gguf_string fs_chat_template_name(const void *key)
{
    static const char prefix[] = FS_TEMPLATE_KEY ".";
    const struct gguf_string name = ((const struct gguf_key *)key)->name;
    const size_t length = sizeof prefix - 1;

    if (!gguf_string_starts_with(name, prefix))
        return (struct gguf_string){"", 0};
    return (struct gguf_string){name.data + length, name.length_bytes - length};
}

bool fs_named_template_applies(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_key *key = subject;

    return key->value.type == GGUF_STRING && fs_chat_template_name(key).length_bytes > 0;
}

void fs_chat_template_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_key *key = subject ? subject : find_default(tree);

    fs_sink_write(sink, key->value.string.data, key->value.string.length_bytes);
}
