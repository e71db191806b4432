#include "fs/tree/tensor_info.h"

#include "fs/tree/json.h"
#include "fs/tree/paths.h"
#include "fs/tree/tree.h"

#include <string.h>

static void write_string(struct fs_sink *sink, const char *string)
{
    fs_json_string(sink, (struct gguf_string){string, strlen(string)});
}

static void write_number_member(struct fs_sink *sink, const char *name, uint64_t number)
{
    fs_json_member(sink, name, false);
    fs_sink_unsigned(sink, number);
}

static void write_null_member(struct fs_sink *sink, const char *name)
{
    fs_json_member(sink, name, false);
    fs_sink_literal(sink, "null");
}

static void write_dims(struct fs_sink *sink, const uint64_t *dims, uint32_t n_dims)
{
    fs_sink_literal(sink, "[");
    for (uint32_t i = 0; i < n_dims; i++) {
        if (i > 0)
            fs_sink_literal(sink, ",");
        fs_sink_unsigned(sink, dims[i]);
    }
    fs_sink_literal(sink, "]");
}

uint32_t fs_tensor_shape(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         uint64_t shape[GGUF_MAX_DIMS])
{
    const struct gguf_shape *original =
        tree->shapes ? &tree->shapes[tensor - tree->model->tensors] : NULL;

    if (original && original->n_dims > 0) {
        memcpy(shape, original->dims, original->n_dims * sizeof *shape);
        return original->n_dims;
    }
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        shape[i] = tensor->ne[tensor->n_dims - 1 - i];
    return tensor->n_dims;
}

void fs_tensor_shape_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                           struct fs_sink *sink)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const uint32_t n_dims = fs_tensor_shape(tree, tensor, shape);

    write_dims(sink, shape, n_dims);
}

static void write_type(struct fs_sink *sink, const struct gguf_tensor *tensor)
{
    const struct dequant_type *type = tensor->type;

    if (type) {
        fs_json_member(sink, "type", false);
        write_string(sink, type->name);
    } else {
        write_null_member(sink, "type");
    }
    write_number_member(sink, "ggml_type", tensor->type_id);
    /* The name does not show an old layout. */
    if (type && type->era != DEQUANT_ERA) {
        if (dequant_is_decodable(type))
            write_number_member(sink, "era", type->era);
        else
            write_null_member(sink, "era"); /* the file does not say which */
    }
    if (tensor->big_endian) {
        fs_json_member(sink, "byte_order", false);
        write_string(sink, "big");
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
        write_null_member(sink, "block_size");
        write_null_member(sink, "type_size");
        write_null_member(sink, "n_bytes");
        if (tensor->extent_bytes > 0)
            write_number_member(sink, "max_bytes", tensor->extent_bytes);
        else
            write_null_member(sink, "max_bytes");
    }
}

/* The target and the rank of a low-rank adapter's factor, unless the other factor is missing. */
static void write_lora(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                       struct fs_sink *sink)
{
    const struct fs_half half = fs_half_of(tensor);
    const struct gguf_tensor *other = fs_other_half(tree->pairs, tensor);
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
    fs_json_member(sink, "factor", false);
    write_string(sink, half.is_second ? "B" : "A");
    write_number_member(sink, "rank", rank);
    fs_sink_literal(sink, "}");
}

struct gguf_pieces fs_tensor_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor)
{
    struct gguf_pieces pieces =
        gguf_source_find_pieces(&tree->model->files[tensor->file_index], tensor->file_offset);
    const char *slash = strrchr(pieces.path, '/');

    if (slash)
        pieces.path = slash + 1;
    return pieces;
}

static void write_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         struct fs_sink *sink)
{
    const struct gguf_pieces pieces = fs_tensor_pieces(tree, tensor);

    fs_json_member(sink, "file", false);
    write_string(sink, pieces.path);
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
    fs_path_expand(FS_TENSOR_FOLDER, strlen(FS_TENSOR_FOLDER), tree, tensor, path);
    fs_json_member(sink, "path", false);
    write_string(sink, path);
    write_type(sink, tensor);
    fs_json_member(sink, "shape", false);
    fs_tensor_shape_write(tree, tensor, sink);
    fs_json_member(sink, "ne", false);
    write_dims(sink, tensor->ne, tensor->n_dims);
    write_number_member(sink, "n_elements", tensor->n_elements);
    write_sizes(sink, tensor);
    write_lora(tree, tensor, sink);
    write_pieces(tree, tensor, sink);
    fs_sink_literal(sink, "}");
}

int fs_tensor_info_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                         struct fs_sink *sink)
{
    (void)place;
    write_info(tree, subject, sink);
    fs_sink_literal(sink, "\n");
    return 0;
}

int fs_tensor_infos_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                          struct fs_sink *sink)
{
    const struct gguf_model *model = tree->model;

    (void)subject;
    if (place->item == 0)
        fs_sink_literal(sink, "[\n");
    if (place->item == model->n_tensors) {
        fs_sink_literal(sink, "]\n");
        return 0;
    }
    write_info(tree, &model->tensors[place->item], sink);
    fs_sink_literal(sink, ++place->item < model->n_tensors ? ",\n" : "\n");
    return 1;
}
