#include "gguf/elements.h"

#include "dequant/kernels.h"
#include "dequant/rows.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/param.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values leave in the host's byte order");

/* Elements converted at a time: they stay in the CPU's cache. No block has more. */
#define ROOM_ELEMENTS 1024u
/* No type has more bytes per element. */
#define ROOM_BYTES (ROOM_ELEMENTS * sizeof(double))

static bool is_swapped(const struct gguf_tensor *tensor)
{
    return tensor->big_endian && dequant_has_byte_order(tensor->type);
}

void gguf_decode_blocks(const struct gguf_tensor *tensor, struct dequant_row row,
                        const uint8_t *blocks, float *out, size_t n_blocks)
{
    const struct dequant_type *type = tensor->type;
    const size_t at_once = ROOM_ELEMENTS / type->block_elements;
    uint8_t little_endian[ROOM_BYTES];

    assert(n_blocks > 0);
    if (!is_swapped(tensor)) {
        dequant_decode_row(type, row, blocks, out, n_blocks);
        return;
    }
    for (size_t n; n_blocks > 0; n_blocks -= n) {
        n = MIN(n_blocks, at_once);
        dequant_swap_blocks(type, blocks, little_endian, n);
        dequant_decode_row(type, row, little_endian, out, n);
        blocks += n * dequant_stride_bytes(type);
        out += n * type->block_elements;
    }
}

int gguf_elements_size(const struct gguf_tensor *tensor, const struct dequant_type *type,
                       uint64_t *size_bytes)
{
    if (type == tensor->type) { /* maybe with row headers */
        *size_bytes = tensor->size_bytes;
        return 0;
    }
    if (__builtin_mul_overflow(tensor->n_elements / type->block_elements,
                               (uint64_t)type->block_bytes, size_bytes))
        return -EOVERFLOW;
    return 0;
}

bool gguf_elements_are_stored(const struct gguf_elements *of)
{
    return of->type == of->tensor->type && !is_swapped(of->tensor) && of->map == GGUF_MAP_NONE;
}

static void map_values(const struct gguf_elements *of, float *values, size_t n)
{
    switch (of->map) {
    case GGUF_MAP_NONE:
        break;
    case GGUF_MAP_ADD:
        for (size_t i = 0; i < n; i++)
            values[i] += of->constant;
        break;
    case GGUF_MAP_LOG_OF_NEGATED:
        for (size_t i = 0; i < n; i++)
            values[i] = (float)log(-(double)values[i]);
        break;
    }
}

void gguf_encode_values(const struct gguf_elements *of, float *values, void *out, size_t n)
{
    map_values(of, values, n);
    if (of->type->id == DEQUANT_F32)
        memcpy(out, values, n * sizeof *values);
    else
        dequant_encode(of->type, values, out, n);
}

/* ---- units: the fewest elements that are whole blocks of both types ---- */

typedef void converter(const struct gguf_elements *of, struct dequant_row row,
                       const uint8_t *blocks, void *out, size_t n_elements);

static size_t count_blocks(const struct gguf_elements *of, size_t n_elements)
{
    return n_elements >> __builtin_ctz(of->tensor->type->block_elements);
}

static void copy(const struct gguf_elements *of, struct dequant_row row, const uint8_t *blocks,
                 void *out, size_t n_elements)
{
    memcpy(out, blocks, count_blocks(of, n_elements) * of->tensor->type->block_bytes);
}

static void swap(const struct gguf_elements *of, struct dequant_row row, const uint8_t *blocks,
                 void *out, size_t n_elements)
{
    dequant_swap_blocks(of->tensor->type, blocks, out, count_blocks(of, n_elements));
}

static void modernize(const struct gguf_elements *of, struct dequant_row row, const uint8_t *blocks,
                      void *out, size_t n_elements)
{
    dequant_modernize_blocks(of->tensor->type, row.index, blocks, out,
                             count_blocks(of, n_elements));
}

static void decode(const struct gguf_elements *of, struct dequant_row row, const uint8_t *blocks,
                   void *out, size_t n_elements)
{
    gguf_decode_blocks(of->tensor, row, blocks, out, count_blocks(of, n_elements));
    map_values(of, out, n_elements);
}

static void encode(const struct gguf_elements *of, struct dequant_row row, const uint8_t *blocks,
                   void *out, size_t n_elements)
{
    float values[ROOM_ELEMENTS];

    decode(of, row, blocks, values, n_elements);
    dequant_encode(of->type, values, out, n_elements);
}

/* Encode values that are stored as float32 in the host's byte order. */
static void encode_stored(const struct gguf_elements *of, struct dequant_row row,
                          const uint8_t *blocks, void *out, size_t n_elements)
{
    dequant_encode(of->type, blocks, out, n_elements);
}

static converter *choose(const struct gguf_elements *of)
{
    const struct dequant_type *from = of->tensor->type;

    if (of->type == from && of->map == GGUF_MAP_NONE)
        return is_swapped(of->tensor) ? swap : copy;
    if (of->type == dequant_modern(from) && of->type->id != DEQUANT_F32 && of->map == GGUF_MAP_NONE)
        return modernize;
    if (of->type->id == DEQUANT_F32)
        return decode;
    return from->id == DEQUANT_F32 && !is_swapped(of->tensor) && of->map == GGUF_MAP_NONE
               ? encode_stored
               : encode;
}

/* ---- slices ---- */

/* Stored blocks of one row, and the part of their data that is wanted. */
struct slice {
    const struct gguf_elements *of;
    converter *convert;
    size_t unit_elements, unit_bytes_in, unit_bytes_out;
    struct dequant_row row;
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES]; /* of `row` */
    size_t skip, length;                       /* of the data of all blocks */
    char *out;
};

static struct slice begin(const struct gguf_elements *of)
{
    const struct dequant_type *from = of->tensor->type, *to = of->type;
    const size_t n =
        from->block_elements > to->block_elements ? from->block_elements : to->block_elements;

    return (struct slice){.of = of,
                          .convert = choose(of),
                          .unit_elements = n,
                          .unit_bytes_in = n / from->block_elements * dequant_stride_bytes(from),
                          .unit_bytes_out = n / to->block_elements * to->block_bytes};
}

/* Convert what is wanted of blocks that lie `at` bytes after the first. */
static void use_blocks(void *argument, uint64_t at, const uint8_t *blocks, size_t n_bytes)
{
    const struct slice *slice = argument;
    const size_t unit_bytes = slice->unit_bytes_out, to = slice->skip + slice->length;
    size_t left = n_bytes / slice->unit_bytes_in;
    size_t from = (size_t)(at / slice->unit_bytes_in) * unit_bytes; /* as slice->skip counts */
    _Alignas(float) char part[ROOM_BYTES];

    for (size_t n; left > 0 && from < to; left -= n) {
        const size_t skip = from < slice->skip ? slice->skip - from : 0;
        const size_t whole = skip > 0 ? 0 : (to - from) / unit_bytes;
        char *out = slice->out + (from + skip - slice->skip);
        const bool is_direct =
            whole > 0 && (slice->convert != decode || (uintptr_t)out % _Alignof(float) == 0);

        n = MIN(is_direct ? whole : skip > 0 ? 1 : (to - from - 1) / unit_bytes + 1, left);
        if (!is_direct || slice->convert == encode)
            n = MIN(n, ROOM_ELEMENTS / slice->unit_elements);
        slice->convert(slice->of, slice->row, blocks, is_direct ? out : part,
                       n * slice->unit_elements);
        if (!is_direct)
            memcpy(out, part + skip, MIN(n * unit_bytes, to - from) - skip);
        blocks += n * slice->unit_bytes_in;
        from += n * unit_bytes;
    }
}

static void copy_headers(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    memcpy((uint8_t *)argument + at, bytes, n_bytes);
}

/* Pass the blocks of a span, with the headers or tail of their row, to use_blocks(). */
static int lend_span(const struct gguf_file *file, uint64_t start, const struct dequant_span *span,
                     struct slice *slice, uint64_t *end_offset)
{
    const uint64_t blocks_end = start + span->blocks_offset + span->blocks_bytes;
    const uint64_t headers_end = start + span->headers_offset + span->headers_bytes;
    const uint64_t end = blocks_end > headers_end ? blocks_end : headers_end;
    int result = 0;

    slice->row = (struct dequant_row){slice->headers, span->row_index};
    if (span->headers_bytes > 0)
        result = gguf_source_lend(&file->source, start + span->headers_offset, span->headers_bytes,
                                  1, copy_headers, slice->headers);
    if (result == 0)
        result =
            gguf_source_lend(&file->source, start + span->blocks_offset, (size_t)span->blocks_bytes,
                             slice->unit_bytes_in, use_blocks, slice);
    if (result == 0 && end > *end_offset)
        *end_offset = end;
    return result;
}

int gguf_elements_read_unchecked(const struct gguf_elements *of, uint64_t offset, size_t length,
                                 char *out, uint64_t *end_offset)
{
    const struct gguf_tensor *tensor = of->tensor;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    struct slice slice = begin(of);
    const uint64_t unit_bytes = slice.unit_bytes_out, n = slice.unit_elements;
    const uint64_t end = ((offset + length - 1) / unit_bytes + 1) * n;
    int result = 0;

    while (result == 0 && length > 0) {
        const struct dequant_span span =
            dequant_span_of(tensor->type, shape, offset / unit_bytes * n, end, UINT64_MAX);
        const uint64_t span_bytes = span.n_blocks * tensor->type->block_elements / n * unit_bytes;

        slice.skip = (size_t)(offset % unit_bytes);
        slice.length = MIN(length, (size_t)span_bytes - slice.skip);
        slice.out = out;
        result = lend_span(&of->model->files[tensor->file_index], tensor->file_offset, &span,
                           &slice, end_offset);
        offset += slice.length;
        out += slice.length;
        length -= slice.length;
    }
    return result;
}

int gguf_elements_read(const struct gguf_elements *of, uint64_t offset, size_t length, char *out)
{
    uint64_t end_offset = of->tensor->file_offset;
    const int result = gguf_elements_read_unchecked(of, offset, length, out, &end_offset);

    return result < 0 ? result
                      : gguf_file_check(&of->model->files[of->tensor->file_index], end_offset);
}
