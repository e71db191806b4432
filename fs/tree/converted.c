#include "fs/tree/converted.h"

#include <string.h>

/* Bytes converted at a time: fits the CPU's cache, and is more than a block of any type. */
#define CHUNK_BYTES (32u << 10)

static void convert(const struct gguf_tensor *tensor, const uint8_t *blocks, uint8_t *out,
                    size_t n_blocks)
{
    /* Old files are never big-endian. */
    if (tensor->big_endian)
        dequant_swap_blocks(tensor->type, blocks, out, n_blocks);
    else
        dequant_modernize_blocks(tensor->type, blocks, out, n_blocks);
}

/* A range of a tensor's data, and its destination. */
struct range {
    const struct gguf_tensor *tensor;
    size_t skip; /* of the first block */
    size_t length;
    char *out;
};

/* Convert blocks that lie `at` bytes after the first. */
static void convert_stretch(void *argument, uint64_t at, const uint8_t *blocks, size_t n_bytes)
{
    const struct range *range = argument;
    const size_t block_bytes = range->tensor->type->block_bytes;
    const size_t room_blocks = CHUNK_BYTES / block_bytes;
    uint8_t converted[CHUNK_BYTES];

    while (n_bytes > 0) {
        const size_t left_blocks = n_bytes / block_bytes;
        const size_t n_blocks = left_blocks < room_blocks ? left_blocks : room_blocks;
        const size_t n = n_blocks * block_bytes, end = (size_t)at + n;
        const size_t first = at > range->skip ? (size_t)at : range->skip;
        const size_t last = end < range->skip + range->length ? end : range->skip + range->length;

        convert(range->tensor, blocks, converted, n_blocks);
        memcpy(range->out + (first - range->skip), converted + (first - at), last - first);
        at += n;
        blocks += n;
        n_bytes -= n;
    }
}

int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out)
{
    const size_t block_bytes = tensor->type->block_bytes;
    struct range range = {tensor, (size_t)(offset % block_bytes), length, out};
    const size_t n_blocks = (range.skip + length + block_bytes - 1) / block_bytes;

    return gguf_source_lend(&model->files[tensor->file_index],
                            tensor->file_offset + offset - range.skip, n_blocks * block_bytes,
                            block_bytes, convert_stretch, &range);
}
