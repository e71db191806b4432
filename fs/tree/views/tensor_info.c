#include "fs/tree/views/view_files.h"

#include "fs/tree/output/json.h"
#include "fs/tree/views/placeholders.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <string.h>

static void write_number_member(struct fs_sink *sink, const char *name, uint64_t number)
{
    fs_json_member(sink, name, false);
    fs_sink_unsigned(sink, number);
}

static void write_text_member(struct fs_sink *sink, const char *name, const char *text)
{
    fs_json_member(sink, name, false);
    fs_json_text(sink, text);
}

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

    write_text_member(sink, "type", type ? type->name : NULL);
    write_number_member(sink, "ggml_type", tensor->type_id);
    /* The name does not show an old layout. */
    if (type && type->era != DEQUANT_ERA) {
        if (dequant_is_decodable(type))
            write_number_member(sink, "era", type->era);
        else
            write_text_member(sink, "era", NULL); /* the file does not say which */
    }
    if (tensor->big_endian) {
        write_text_member(sink, "byte_order", "big");
    }
}

static void write_sizes(struct fs_sink *sink, const struct gguf_tensor *tensor)
{
    if (tensor->type) {
        write_number_member(sink, "block_size", tensor->type->block_elements);
        write_number_member(sink, "type_size", tensor->type->block_bytes);
        if (tensor->type->row_header_bytes > 0)
            write_number_member(sink, "row_header_bytes", tensor->type->row_header_bytes);
        if (tensor->type->interleave_rows != 1)
            write_number_member(sink, "interleave_rows", tensor->type->interleave_rows);
        if (tensor->type->tail_bytes > 0)
            write_number_member(sink, "tail_bytes", tensor->type->tail_bytes);
        write_number_member(sink, "n_bytes", tensor->size_bytes);
    } else {
        write_text_member(sink, "block_size", NULL);
        write_text_member(sink, "type_size", NULL);
        write_text_member(sink, "n_bytes", NULL);
        if (tensor->extent_bytes > 0)
            write_number_member(sink, "max_bytes", tensor->extent_bytes);
        else
            write_text_member(sink, "max_bytes", NULL);
    }
}

/* The target and the rank of a low-rank adapter's factor, unless the other factor is missing. */
static void write_lora(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    const struct fs_half half = fs_half_of(tensor);
    const struct gguf_tensor *other = fs_other_half(tree->facts->pairs, tensor);
    uint64_t rank;

    if (half.kind != FS_LORA_PAIR || !other)
        return;
    rank = half.is_second ? fs_lora_rank(other, tensor) : fs_lora_rank(tensor, other);
    if (rank == 0)
        return;
    fs_json_member(sink, "lora", false);
    fs_sink_literal(sink, "{");
    fs_json_member(sink, "target", true);
    fs_json_string(sink, half.base);
    write_text_member(sink, "factor", half.is_second ? "B" : "A");
    write_number_member(sink, "rank", rank);
    fs_sink_literal(sink, "}");
}

static void write_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         struct fs_sink *sink)
{
    const struct gguf_pieces pieces = fs_tensor_pieces(tree, tensor);

    write_text_member(sink, "file", pieces.path);
    write_number_member(sink, "offset", pieces.offset);
    if (pieces.n_files == 1)
        return;
    write_number_member(sink, "parts", pieces.n_files);
    write_number_member(sink, "piece_bytes", pieces.piece_bytes);
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
    fs_path_expand(tree->table, FS_TENSOR_FOLDER, strlen(FS_TENSOR_FOLDER), tree, tensor, path);
    write_text_member(sink, "path", path);
    write_type(sink, tensor);
    fs_json_member(sink, "shape", false);
    fs_tensor_shape_write(tree, tensor, sink);
    fs_json_member(sink, "ne", false);
    fs_json_integers(sink, tensor->ne, tensor->n_dims);
    write_number_member(sink, "n_elements", tensor->n_elements);
    write_sizes(sink, tensor);
    write_lora(tree, tensor, sink);
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

    (void)subject;
    fs_sink_literal(sink, "[\n");
    for (uint64_t i = 0; i < model->n_tensors && sink->error == 0; i++) {
        write_info(tree, &model->tensors[i], sink);
        fs_sink_literal(sink, i + 1 < model->n_tensors ? ",\n" : "\n");
    }
    fs_sink_literal(sink, "]\n");
}
