#include "fs/tree/facts/facts.h"

#include "fs/tree/core/tree_core.h"

#include <string.h>

uint32_t fs_tensor_shape(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         uint64_t shape[GGUF_MAX_DIMS])
{
    const struct gguf_shape *original =
        tree->facts->shapes ? &tree->facts->shapes[tensor - tree->model->tensors] : NULL;

    if (original && original->n_dims > 0) {
        memcpy(shape, original->dims, original->n_dims * sizeof *shape);
        return original->n_dims;
    }
    for (uint32_t i = 0; i < tensor->n_dims; i++)
        shape[i] = tensor->ne[tensor->n_dims - 1 - i];
    return tensor->n_dims;
}

uint32_t fs_locate(const struct fs_tree *tree, const struct gguf_tensor *tensor, uint64_t index,
                   uint64_t coordinates[GGUF_MAX_DIMS])
{
    const uint32_t n_dims = fs_tensor_shape(tree, tensor, coordinates);

    for (uint32_t i = n_dims; i-- > 0;) {
        const uint64_t size = coordinates[i] > 0 ? coordinates[i] : 1;

        coordinates[i] = index % size;
        index /= size;
    }
    return n_dims;
}

struct gguf_pieces fs_tensor_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor)
{
    struct gguf_pieces pieces = gguf_source_find_pieces(
        &tree->model->files[tensor->file_index].source, tensor->file_offset);
    const char *slash = pieces.path ? strrchr(pieces.path, '/') : NULL;

    if (slash)
        pieces.path = slash + 1;
    return pieces;
}

static uint32_t type_id_of(const struct fs_tree *tree, const struct gguf_tensor *tensor)
{
    static const uint32_t chosen[] = {
        [FS_DTYPE_F32] = DEQUANT_F32, [FS_DTYPE_F16] = DEQUANT_F16, [FS_DTYPE_BF16] = DEQUANT_BF16};

    if (tree->facts->dtype != FS_DTYPE_STORED)
        return chosen[tree->facts->dtype];
    if (!tensor->type)
        return DEQUANT_F32;
    switch (tensor->type->id) {
    case DEQUANT_F32:
    case DEQUANT_F64:
    case DEQUANT_I16:
    case DEQUANT_I32:
    case DEQUANT_I64:
        return DEQUANT_F32;
    case DEQUANT_F16:
        return DEQUANT_F16;
    default:
        return DEQUANT_BF16;
    }
}

const struct dequant_type *fs_dtype_of(const struct fs_tree *tree, const struct gguf_tensor *tensor)
{
    return dequant_type_by_id(type_id_of(tree, tensor));
}
