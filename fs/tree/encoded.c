#include "fs/tree/encoded.h"

#include "dequant/kernels.h"
#include "fs/tree/decoded.h"

#include <string.h>

/* Elements encoded at a time: they stay in the CPU's cache. No block has more. */
#define CHUNK_ELEMENTS 4096u
/* No type with an encoder has more bytes per element. */
#define CHUNK_BYTES (CHUNK_ELEMENTS * sizeof(float))

int fs_encoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    const struct dequant_type *type, uint64_t offset, size_t length, char *out)
{
    const struct fs_conversion floats = {.format = FS_F32};
    const size_t room_blocks = CHUNK_ELEMENTS / type->block_elements;
    uint64_t end_offset = tensor->file_offset;
    float values[CHUNK_ELEMENTS];

    while (length > 0) {
        const uint64_t first_block = offset / type->block_bytes;
        const size_t skip = (size_t)(offset % type->block_bytes);
        const size_t wanted_blocks = (skip + length + type->block_bytes - 1) / type->block_bytes;
        const size_t n_blocks = wanted_blocks < room_blocks ? wanted_blocks : room_blocks;
        const size_t n_elements = n_blocks * type->block_elements;
        const size_t n_bytes = n_blocks * type->block_bytes;
        const size_t n = n_bytes - skip < length ? n_bytes - skip : length;
        const int result = fs_decoded_read_unchecked(
            model, tensor, &floats, first_block * type->block_elements * sizeof *values,
            n_elements * sizeof *values, (char *)values, &end_offset);

        if (result < 0)
            return result;
        if (n == n_bytes) {
            dequant_encode(type, values, out, n_elements);
        } else {
            char blocks[CHUNK_BYTES];

            dequant_encode(type, values, blocks, n_elements);
            memcpy(out, blocks + skip, n);
        }
        offset += n;
        out += n;
        length -= n;
    }
    return gguf_source_check(&model->files[tensor->file_index], end_offset);
}
