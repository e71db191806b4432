#include "fs/tree/converted.h"

#include "gguf/map.h"

#include <string.h>

/* What is converted at a time: in the CPU's cache, and more than a block of any type. */
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

int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out)
{
    const struct gguf_file *file = &model->files[tensor->file_index];
    const size_t block_bytes = tensor->type->block_bytes;
    const size_t room_blocks = CHUNK_BYTES / block_bytes;
    uint8_t source[CHUNK_BYTES], converted[CHUNK_BYTES];

    while (length > 0) {
        const size_t skip = (size_t)(offset % block_bytes);
        size_t n_blocks = (skip + length + block_bytes - 1) / block_bytes;
        size_t n;
        int result;

        if (n_blocks > room_blocks)
            n_blocks = room_blocks;
        result = gguf_map_read(file, tensor->file_offset + offset - skip, n_blocks * block_bytes,
                               source);
        if (result < 0)
            return result;
        convert(tensor, source, converted, n_blocks);
        n = n_blocks * block_bytes - skip;
        if (n > length)
            n = length;
        memcpy(out, converted + skip, n);
        offset += n;
        out += n;
        length -= n;
    }
    return 0;
}
