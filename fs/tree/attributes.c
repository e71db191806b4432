#include "fs/tree/attributes.h"

#include "fs/tree/views/placeholders.h"
#include "fs/tree/views/view_files.h"
#include "fs/tree/tree.h"

#include <errno.h>
#include <string.h>

/* The number, if ggufs does not know the type. */
static void write_type(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    (void)tree;
    if (tensor->type)
        fs_sink_literal(sink, tensor->type->name);
    else
        fs_sink_unsigned(sink, tensor->type_id);
}

static void write_offset(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         struct fs_sink *sink)
{
    const struct gguf_pieces pieces = fs_tensor_pieces(tree, tensor);

    if (pieces.path)
        fs_sink_unsigned(sink, pieces.offset);
}

static void write_file(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    const char *path = fs_tensor_pieces(tree, tensor).path;

    fs_sink_literal(sink, path ? path : "");
}

static const struct {
    const char *name;
    void (*write)(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                  struct fs_sink *sink);
} attributes[] = {
    {"user.ggufs.type", write_type},
    {"user.ggufs.shape", fs_tensor_shape_write},
    {"user.ggufs.file", write_file},
    {"user.ggufs.offset", write_offset},
};

#define N_ATTRIBUTES (sizeof attributes / sizeof *attributes)

/* Return the tensor that a folder or file is of, or NULL. */
static const struct gguf_tensor *tensor_of(const struct fs_tree *tree, fs_node_index index)
{
    const struct fs_node *node = fs_tree_node(tree, index);

    return node->view && node->kind != FS_LINK &&
                   fs_path_is_of_tensor(tree->table, node->view->path)
               ? node->subject
               : NULL;
}

int fs_attribute_write(const struct fs_tree *tree, fs_node_index node, const char *name,
                       struct fs_sink *sink)
{
    const struct gguf_tensor *tensor = tensor_of(tree, node);

    if (!gguf_text_starts_with(name, "user."))
        return -EOPNOTSUPP;
    for (size_t i = 0; tensor && i < N_ATTRIBUTES; i++) {
        if (strcmp(attributes[i].name, name) == 0) {
            attributes[i].write(tree, tensor, sink);
            return 0;
        }
    }
    return -ENODATA;
}

void fs_attributes_list(const struct fs_tree *tree, fs_node_index node, struct fs_sink *sink)
{
    for (size_t i = 0; tensor_of(tree, node) && i < N_ATTRIBUTES; i++)
        fs_sink_write(sink, attributes[i].name, strlen(attributes[i].name) + 1);
}
