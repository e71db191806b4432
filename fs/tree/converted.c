#include "fs/tree/converted.h"

#include "dequant/rows.h"

#include <string.h>

/* Bytes converted at a time: fits the CPU's cache, and is more than a block of any type. */
#define CHUNK_BYTES (32u << 10)

/* Blocks of one span, and the destination of the converted ones. */
struct range {
    const struct gguf_tensor *tensor;
    uint32_t row_index; /* in the group of interleaved rows */
    size_t skip;        /* bytes of the first block, converted */
    size_t length;
    char *out;
};

static void convert(const struct range *range, const uint8_t *blocks, uint8_t *out, size_t n_blocks)
{
    const struct dequant_type *type = range->tensor->type;

    /* Files with old blocks are never big-endian, and interleaved types have no byte order. */
    if (range->tensor->big_endian && dequant_has_byte_order(type))
        dequant_swap_blocks(type, blocks, out, n_blocks);
    else
        dequant_modernize_blocks(type, range->row_index, blocks, out, n_blocks);
}

/* Convert blocks that lie `at` bytes after the first. */
static void convert_stretch(void *argument, uint64_t at, const uint8_t *blocks, size_t n_bytes)
{
    const struct range *range = argument;
    const struct dequant_type *type = range->tensor->type;
    const size_t stride_bytes = dequant_stride_bytes(type);
    const size_t block_bytes_out = dequant_modern_bytes(type);
    const size_t room_blocks = CHUNK_BYTES / block_bytes_out;
    const size_t end_out = range->skip + range->length;
    size_t start = (size_t)(at / stride_bytes) * block_bytes_out;
    size_t left_blocks = n_bytes / stride_bytes;
    uint8_t converted[CHUNK_BYTES];

    while (left_blocks > 0) {
        const size_t n_blocks = left_blocks < room_blocks ? left_blocks : room_blocks;
        const size_t end = start + n_blocks * block_bytes_out;
        const size_t first = start > range->skip ? start : range->skip;
        const size_t last = end < end_out ? end : end_out;

        convert(range, blocks, converted, n_blocks);
        memcpy(range->out + (first - range->skip), converted + (first - start), last - first);
        start = end;
        blocks += n_blocks * stride_bytes;
        left_blocks -= n_blocks;
    }
}

int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out)
{
    const struct dequant_type *type = tensor->type;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    const size_t block_bytes_out = dequant_modern_bytes(type);
    const uint64_t end =
        (offset + length + block_bytes_out - 1) / block_bytes_out * type->block_elements;
    int result = 0;

    while (result == 0 && length > 0) {
        const struct dequant_span span = dequant_span_of(
            type, shape, offset / block_bytes_out * type->block_elements, end, UINT64_MAX);
        const size_t skip = (size_t)(offset % block_bytes_out);
        const uint64_t room = span.n_blocks * block_bytes_out - skip;
        struct range range = {tensor, span.row_index, skip, room < length ? (size_t)room : length,
                              out};

        result = gguf_source_lend(
            &model->files[tensor->file_index], tensor->file_offset + span.blocks_offset,
            (size_t)span.blocks_bytes, dequant_stride_bytes(type), convert_stretch, &range);
        offset += range.length;
        out += range.length;
        length -= range.length;
    }
    return result;
}
