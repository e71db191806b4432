#include "fs/tree/facts/facts.h"
#include "fs/tree/views/view_files.h"

#include "fs/tree/output/escaped_text.h"
#include "fs/tree/views/placeholders.h"
#include "fs/tree/core/tree_core.h"

#include <string.h>

static void write_shape(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                        struct fs_sink *sink)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const uint32_t n_dims = fs_tensor_shape(tree, tensor, shape);

    for (uint32_t i = 0; i < n_dims; i++) {
        if (i > 0)
            fs_sink_literal(sink, "x");
        fs_sink_unsigned(sink, shape[i]);
    }
}

/* Bytes and bits per weight stay empty if the type is unknown. */
static void write_sizes(const struct gguf_tensor *tensor, struct fs_sink *sink)
{
    if (tensor->type)
        fs_sink_unsigned(sink, tensor->size_bytes);
    fs_sink_literal(sink, "\t");
    if (tensor->type && tensor->n_elements > 0)
        fs_sink_print(sink, "%.4f", 8 * (double)tensor->size_bytes / (double)tensor->n_elements);
}

static void write_line(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    char path[FS_PATH_BYTES];

    fs_escaped_write(sink, tensor->name.data, tensor->name.length_bytes, true);
    if (tensor->type)
        fs_sink_print(sink, "\t%s\t", tensor->type->name);
    else
        fs_sink_print(sink, "\t%u\t", tensor->type_id);
    write_shape(tree, tensor, sink);
    fs_sink_literal(sink, "\t");
    fs_sink_unsigned(sink, tensor->n_elements);
    fs_sink_literal(sink, "\t");
    write_sizes(tensor, sink);
    fs_path_expand(tree, FS_TENSOR_FOLDER, strlen(FS_TENSOR_FOLDER), tensor, path);
    fs_sink_literal(sink, "\t");
    fs_escaped_write(sink, path, strlen(path), true);
    fs_sink_literal(sink, "\n");
}

void fs_tensors_tsv_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_sink_literal(sink, "name\ttype\tshape\telements\tbytes\tbits_per_weight\tfolder\n");
    for (uint64_t i = 0; i < tree->model->n_tensors && sink->error == 0; i++)
        write_line(tree, &tree->model->tensors[i], sink);
}
