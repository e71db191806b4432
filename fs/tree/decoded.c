#include "fs/tree/decoded.h"

#include "dequant/kernels.h"
#include "dequant/rows.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values leave in the host's byte order");

/*
 * Elements decoded at a time where values cannot go straight to their destination. No block has
 * more.
 */
#define BOUNCE_ELEMENTS 1024u
/* No type has more bytes per element. */
#define BOUNCE_BYTES (BOUNCE_ELEMENTS * sizeof(double))

void fs_decode_blocks(const struct gguf_tensor *tensor, struct dequant_row row,
                      const uint8_t *blocks, float *out, size_t n_blocks)
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

/*
 * Write bytes `skip`, which must lie in the first block, to `skip + length` of the decoded blocks.
 */
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
            fs_decode_blocks(tensor, row, blocks, (float *)(void *)out, n_blocks);
            written = n_blocks * block_bytes_out;
        } else {
            n_blocks = (skip + length + block_bytes_out - 1) / block_bytes_out;
            if (n_blocks > BOUNCE_ELEMENTS / type->block_elements)
                n_blocks = BOUNCE_ELEMENTS / type->block_elements;
            /*
             * First decode up to the next whole block, unless nothing could then be decoded in
             * place.
             */
            if (skip > 0 && ((uintptr_t)out + block_bytes_out - skip) % _Alignof(float) == 0)
                n_blocks = 1;
            fs_decode_blocks(tensor, row, blocks, bounce, n_blocks);
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

/* Blocks of one span, and the destination of their values. */
struct range {
    const struct gguf_tensor *tensor;
    struct dequant_row row;
    size_t skip; /* bytes of the first block's values */
    size_t length;
    char *out;
};

/* Decode blocks that lie `at` bytes after the first. */
static void decode_stretch(void *argument, uint64_t at, const uint8_t *blocks, size_t n_bytes)
{
    const struct range *range = argument;
    const struct dequant_type *type = range->tensor->type;
    const size_t stride_bytes = dequant_stride_bytes(type);
    const size_t block_bytes_out = type->block_elements * sizeof(float);
    const size_t start = (size_t)(at / stride_bytes) * block_bytes_out;
    const size_t end = start + n_bytes / stride_bytes * block_bytes_out;
    const size_t first = start > range->skip ? start : range->skip;
    const size_t last = end < range->skip + range->length ? end : range->skip + range->length;

    decode_part(range->tensor, range->row, blocks, first - start, last - first,
                range->out + (first - range->skip));
}

static void copy_headers(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    memcpy((uint8_t *)argument + at, bytes, n_bytes);
}

/* Get the headers of the span's row, if it has any, and decode its blocks. */
static int read_span(const struct gguf_source *file, const struct dequant_span *span,
                     uint8_t headers[DEQUANT_MAX_HEADER_BYTES], struct range *range)
{
    const uint64_t start = range->tensor->file_offset;
    int result = 0;

    if (span->headers_bytes > 0)
        result = gguf_source_lend_unchecked(file, start + span->headers_offset, span->headers_bytes,
                                            1, copy_headers, headers);
    if (result == 0)
        result = gguf_source_lend_unchecked(
            file, start + span->blocks_offset, (size_t)span->blocks_bytes,
            dequant_stride_bytes(range->tensor->type), decode_stretch, range);
    return result;
}

int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out)
{
    const struct dequant_type *type = tensor->type;
    const struct gguf_source *file = &model->files[tensor->file_index];
    const uint64_t end = (offset + length + sizeof(float) - 1) / sizeof(float);
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES];
    uint64_t end_offset = 0; /* of the bytes in the tensor's data */

    while (length > 0) {
        const struct dequant_span span =
            dequant_span_of(type, tensor->ne[0], offset / sizeof(float), end, UINT64_MAX);
        struct range range = {.tensor = tensor, .row = {headers, span.row_index}, .out = out};
        int result;

        range.skip = (size_t)(offset - span.first_element * sizeof(float));
        range.length = (size_t)span.n_blocks * type->block_elements * sizeof(float) - range.skip;
        if (range.length > length)
            range.length = length;
        result = read_span(file, &span, headers, &range);
        if (result < 0)
            return result;
        if (span.blocks_offset + span.blocks_bytes > end_offset)
            end_offset = span.blocks_offset + span.blocks_bytes;
        offset += range.length;
        out += range.length;
        length -= range.length;
    }
    return gguf_source_check(file, tensor->file_offset + end_offset);
}
