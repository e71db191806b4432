#include "fs/tree/views/view_files.h"

#include "fs/tree/output/json.h"
#include "fs/tree/views/placeholders.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <string.h>

void fs_tensor_shape_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                           struct fs_sink *sink)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const uint32_t n_dims = fs_tensor_shape(tree, tensor, shape);

    fs_json_integers(sink, shape, n_dims);
}

static void write_type(struct fs_sink *sink, const struct gguf_tensor *tensor)
{
    const struct dequant_type *type = tensor->type;

    fs_json_text_member(sink, "type", type ? type->name : NULL);
    fs_json_count(sink, "ggml_type", tensor->type_id);
    /* The name does not show an old layout. */
    if (type && type->era != DEQUANT_ERA) /* or the file does not say which */
        fs_json_count_if(sink, "era", dequant_is_decodable(type), type->era);
    if (tensor->big_endian)
        fs_json_text_member(sink, "byte_order", "big");
}

static void write_sizes(struct fs_sink *sink, const struct gguf_tensor *tensor)
{
    if (tensor->type) {
        fs_json_count(sink, "block_size", tensor->type->block_elements);
        fs_json_count(sink, "type_size", tensor->type->block_bytes);
        if (tensor->type->row_header_bytes > 0)
            fs_json_count(sink, "row_header_bytes", tensor->type->row_header_bytes);
        if (tensor->type->interleave_rows != 1)
            fs_json_count(sink, "interleave_rows", tensor->type->interleave_rows);
        if (tensor->type->tail_bytes > 0)
            fs_json_count(sink, "tail_bytes", tensor->type->tail_bytes);
        fs_json_count(sink, "n_bytes", tensor->size_bytes);
    } else {
        fs_json_text_member(sink, "block_size", NULL);
        fs_json_text_member(sink, "type_size", NULL);
        fs_json_text_member(sink, "n_bytes", NULL);
        fs_json_count_if(sink, "max_bytes", tensor->extent_bytes > 0, tensor->extent_bytes);
    }
}

static void write_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         struct fs_sink *sink)
{
    const struct gguf_pieces pieces = fs_tensor_pieces(tree, tensor);

    fs_json_text_member(sink, "file", pieces.path);
    fs_json_count_if(sink, "offset", pieces.path, pieces.offset);
    if (pieces.n_files == 1)
        return;
    fs_json_count(sink, "parts", pieces.n_files);
    fs_json_count(sink, "piece_bytes", pieces.piece_bytes);
}

static void write_info(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    char path[FS_PATH_BYTES];

    fs_sink_literal(sink, "{");
    fs_json_member(sink, "name", true);
    fs_json_string(sink, tensor->name);
    if (tensor->gguf_name.length_bytes > 0) {
        fs_json_member(sink, "gguf_name", false);
        fs_json_string(sink, tensor->gguf_name);
    }
    fs_path_expand(tree, FS_TENSOR_FOLDER, strlen(FS_TENSOR_FOLDER), tensor, path);
    fs_json_text_member(sink, "path", path);
    write_type(sink, tensor);
    fs_json_member(sink, "shape", false);
    fs_tensor_shape_write(tree, tensor, sink);
    fs_json_member(sink, "ne", false);
    fs_json_integers(sink, tensor->ne, tensor->n_dims);
    fs_json_count(sink, "n_elements", tensor->n_elements);
    write_sizes(sink, tensor);
    write_pieces(tree, tensor, sink);
    fs_sink_literal(sink, "}");
}

void fs_tensor_info_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    write_info(tree, subject, sink);
    fs_sink_literal(sink, "\n");
}

void fs_tensor_infos_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;

    fs_sink_literal(sink, "[\n");
    for (uint64_t i = 0; i < model->n_tensors && sink->error == 0; i++) {
        write_info(tree, &model->tensors[i], sink);
        fs_sink_literal(sink, i + 1 < model->n_tensors ? ",\n" : "\n");
    }
    fs_sink_literal(sink, "]\n");
}
