#include "fs/tree/decoded.h"

#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "gguf/map.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values leave in the host's byte order");

/* What is decoded at a time where it can't go straight to its place; no block has more. */
#define BOUNCE_ELEMENTS 1024u
/* What is read of the source at a time: it stays in the CPU's cache until it is decoded. */
#define SOURCE_BYTES (64u << 10)
/* No type takes more bytes for an element. */
#define BOUNCE_BYTES (BOUNCE_ELEMENTS * sizeof(double))

void fs_decode(const struct gguf_tensor *tensor, struct dequant_row row, const uint8_t *blocks,
               float *out, size_t n_blocks)
{
    const struct dequant_type *type = tensor->type;
    const size_t at_a_time = BOUNCE_ELEMENTS / type->block_elements;
    uint8_t little_endian[BOUNCE_BYTES];

    if (!tensor->big_endian || !dequant_has_byte_order(type)) {
        dequant_decode_row(type, row, blocks, out, n_blocks);
        return;
    }
    while (n_blocks > 0) {
        const size_t n = n_blocks < at_a_time ? n_blocks : at_a_time;

        dequant_swap_blocks(type, blocks, little_endian, n);
        dequant_decode_row(type, row, little_endian, out, n);
        blocks += n * dequant_stride_bytes(type);
        out += n * type->block_elements;
        n_blocks -= n;
    }
}

/* Decodes bytes `skip`, which is in the first block, to `skip + length` of what the blocks make. */
static void decode_part(const struct gguf_tensor *tensor, struct dequant_row row,
                        const uint8_t *blocks, size_t skip, size_t length, char *out)
{
    const struct dequant_type *type = tensor->type;
    const size_t block_bytes_out = type->block_elements * sizeof(float);
    float bounce[BOUNCE_ELEMENTS];

    while (length > 0) {
        size_t n_blocks = length / block_bytes_out;
        size_t written;

        if (skip == 0 && n_blocks > 0 && (uintptr_t)out % _Alignof(float) == 0) {
            fs_decode(tensor, row, blocks, (float *)(void *)out, n_blocks);
            written = n_blocks * block_bytes_out;
        } else {
            n_blocks = (skip + length + block_bytes_out - 1) / block_bytes_out;
            if (n_blocks > BOUNCE_ELEMENTS / type->block_elements)
                n_blocks = BOUNCE_ELEMENTS / type->block_elements;
            /* A head: up to the next whole block, unless nothing could be decoded in place. */
            if (skip > 0 && ((uintptr_t)out + block_bytes_out - skip) % _Alignof(float) == 0)
                n_blocks = 1;
            fs_decode(tensor, row, blocks, bounce, n_blocks);
            written = n_blocks * block_bytes_out - skip;
            if (written > length)
                written = length;
            memcpy(out, (const char *)bounce + skip, written);
        }
        blocks += n_blocks * dequant_stride_bytes(type);
        skip = 0;
        out += written;
        length -= written;
    }
}

int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out)
{
    const struct dequant_type *type = tensor->type;
    const struct gguf_file *file = &model->files[tensor->file_index];
    const uint64_t end = (offset + length + sizeof(float) - 1) / sizeof(float);
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES], source[SOURCE_BYTES];

    while (length > 0) {
        const struct dequant_span span =
            dequant_span_of(type, tensor->ne[0], offset / sizeof(float), end, sizeof source);
        const struct dequant_row row = {headers, span.row_index};
        const size_t skip = (size_t)(offset - span.first_element * sizeof(float));
        size_t n = (size_t)span.n_blocks * type->block_elements * sizeof(float) - skip;
        int result = 0;

        if (span.headers_bytes > 0)
            result = gguf_map_read(file, tensor->file_offset + span.headers_offset,
                                   span.headers_bytes, headers);
        if (result == 0)
            result = gguf_map_read(file, tensor->file_offset + span.blocks_offset,
                                   span.blocks_bytes, source);
        if (result < 0)
            return result;
        if (n > length)
            n = length;
        decode_part(tensor, row, source, skip, n, out);
        offset += n;
        out += n;
        length -= n;
    }
    return 0;
}
