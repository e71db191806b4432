#include "fs/models/text_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct text_tree {
    struct fs_tree tree; /* must come first */
    struct fs_named_text texts[FS_MAX_TEXTS];
};

static struct fs_subject_list list_texts(const struct fs_tree *tree)
{
    const struct text_tree *made = (const struct text_tree *)tree;

    return (struct fs_subject_list){made->texts, FS_MAX_TEXTS, sizeof *made->texts};
}

static bool has_text(const struct fs_tree *tree, const void *subject)
{
    const struct fs_named_text *text = subject;

    return text->text && !text->is_link;
}

static bool has_link(const struct fs_tree *tree, const void *subject)
{
    const struct fs_named_text *text = subject;

    return text->text && text->is_link;
}

static struct gguf_string name_of_text(const void *subject)
{
    const struct fs_named_text *text = subject;

    return (struct gguf_string){text->name, strlen(text->name)};
}

static void write_text(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_named_text *text = subject;

    fs_sink_write(sink, text->text, text->length);
}

static const struct fs_subjects texts = {list_texts, name_of_text};
static const struct fs_table table = {
    .views = (const struct fs_view[]){{"<text>", has_text, .write = write_text},
                                      {"<text>", has_link, .target = "model.gguf"}},
    .n_views = 2,
    .placeholders = &(const struct fs_placeholder){"<text>", &texts, .name = name_of_text},
    .n_placeholders = 1,
    .subjects = (const struct fs_subjects *const[]){&texts, NULL},
};
static const struct gguf_model no_model;

int fs_text_tree_make(int result, const struct fs_named_text named[FS_MAX_TEXTS],
                      struct fs_tree **tree)
{
    struct text_tree *made = result == 0 ? calloc(1, sizeof *made) : NULL;
    fs_node_index twins[2];

    *tree = NULL;
    if (!made) {
        for (size_t i = 0; i < FS_MAX_TEXTS; i++)
            free(named[i].text);
        return result < 0 ? result : -ENOMEM;
    }
    memcpy(made->texts, named, sizeof made->texts);
    made->tree.model = &no_model;
    made->tree.table = &table;
    fs_open_images_begin(&made->tree.images);
    result = fs_tree_begin(&made->tree, twins);
    for (size_t i = 0; i < FS_MAX_TEXTS && result == 0; i++)
        if (has_link(NULL, &named[i]))
            result = fs_nodes_set_target(&made->tree.nodes,
                                         fs_nodes_find(&made->tree.nodes, FS_ROOT, named[i].name),
                                         named[i].text);
    if (result < 0)
        fs_text_tree_free(&made->tree);
    else
        *tree = &made->tree;
    return result;
}

void fs_text_tree_free(struct fs_tree *tree)
{
    struct text_tree *made = (struct text_tree *)tree;

    fs_tree_end(tree);
    for (size_t i = 0; i < FS_MAX_TEXTS; i++)
        free(made->texts[i].text);
    free(made);
}

bool fs_is_text_tree(const struct fs_tree *tree)
{
    return tree->model == &no_model;
}
