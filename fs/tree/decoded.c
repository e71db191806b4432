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
    uint8_t little_endian[BOUNCE_BYTES];
    size_t at_a_time;

    if (!tensor->big_endian || !dequant_has_byte_order(type)) {
        dequant_decode_row(type, row, blocks, out, n_blocks);
        return;
    }
    at_a_time = BOUNCE_ELEMENTS / type->block_elements;
    while (n_blocks > 0) {
        const size_t n = n_blocks < at_a_time ? n_blocks : at_a_time;

        dequant_swap_blocks(type, blocks, little_endian, n);
        dequant_decode_row(type, row, little_endian, out, n);
        blocks += n * dequant_stride_bytes(type);
        out += n * type->block_elements;
        n_blocks -= n;
    }
}

/* Blocks of one span, and the destination of their values. */
struct range {
    const struct gguf_tensor *tensor;
    const struct fs_conversion *conversion;
    struct dequant_row row;
    size_t blocks_bytes; /* of all blocks of the span */
    size_t skip;         /* bytes of the first block's converted values */
    size_t length;
    char *out;
};

/*
 * Decode whole blocks as floats from `skip`, which must lie in the first one. Returns the number of
 * blocks it used; *written is at most `length`.
 */
static size_t decode_floats(const struct range *range, const uint8_t *blocks, size_t skip,
                            size_t length, char *out, size_t *written)
{
    const struct dequant_type *type = range->tensor->type;
    const size_t block_bytes_out = type->block_elements * sizeof(float);
    size_t n_blocks = length / block_bytes_out;
    float bounce[BOUNCE_ELEMENTS];

    if (skip == 0 && n_blocks > 0 && (uintptr_t)out % _Alignof(float) == 0) {
        fs_decode_blocks(range->tensor, range->row, blocks, (float *)(void *)out, n_blocks);
        *written = n_blocks * block_bytes_out;
        return n_blocks;
    }
    n_blocks = (skip + length + block_bytes_out - 1) / block_bytes_out;
    if (n_blocks > BOUNCE_ELEMENTS / type->block_elements)
        n_blocks = BOUNCE_ELEMENTS / type->block_elements;
    /* First decode up to the next whole block, unless nothing could then be decoded in place. */
    if (skip > 0 && ((uintptr_t)out + block_bytes_out - skip) % _Alignof(float) == 0)
        n_blocks = 1;
    fs_decode_blocks(range->tensor, range->row, blocks, bounce, n_blocks);
    *written = n_blocks * block_bytes_out - skip;
    if (*written > length)
        *written = length;
    memcpy(out, (const char *)bounce + skip, *written);
    return n_blocks;
}

/* The same for any conversion. */
static size_t decode_converted(const struct range *range, const uint8_t *blocks, size_t skip,
                               size_t length, char *out, size_t *written)
{
    const struct dequant_type *type = range->tensor->type;
    const struct fs_conversion *conversion = range->conversion;
    /* Elements of whole blocks, which have 2^block_bits of them. */
    const int block_bits = __builtin_ctz(type->block_elements);
    const uint64_t wanted = fs_format_count(
        conversion->format, skip + length + fs_format_bytes(conversion->format) - 1);
    const uint64_t room = wanted < BOUNCE_ELEMENTS ? wanted : BOUNCE_ELEMENTS;
    const size_t n_blocks = (size_t)((room + type->block_elements - 1) >> block_bits);
    const size_t n = n_blocks << block_bits;
    const size_t n_bytes = n * fs_format_bytes(conversion->format);
    float bounce[BOUNCE_ELEMENTS];
    char converted[sizeof bounce];

    fs_decode_blocks(range->tensor, range->row, blocks, bounce, n_blocks);
    *written = n_bytes - skip < length ? n_bytes - skip : length;
    if (*written == n_bytes) {
        fs_convert(conversion, bounce, out, n);
    } else {
        fs_convert(conversion, bounce, converted, n);
        memcpy(out, converted + skip, *written);
    }
    return n_blocks;
}

/*
 * Write bytes `skip`, which must lie in the first block, to `skip + length` of the blocks' values.
 */
static void decode_part(const struct range *range, const uint8_t *blocks, size_t skip,
                        size_t length, char *out)
{
    const struct fs_conversion *conversion = range->conversion;
    const bool is_plain = conversion->format == FS_F32 && conversion->map == FS_UNCHANGED;

    if (fs_is_stored_as(range->tensor, conversion)) {
        memcpy(out, blocks + skip, length);
        return;
    }
    while (length > 0) {
        size_t written = 0;
        const size_t n_blocks = (is_plain ? decode_floats : decode_converted)(
            range, blocks, skip, length, out, &written);
        blocks += n_blocks * dequant_stride_bytes(range->tensor->type);
        skip = 0;
        out += written;
        length -= written;
    }
}

/* Decode blocks that lie `at` bytes after the first. */
static void decode_stretch(void *argument, uint64_t at, const uint8_t *blocks, size_t n_bytes)
{
    const struct range *range = argument;
    const struct dequant_type *type = range->tensor->type;
    const size_t stride_bytes = dequant_stride_bytes(type);
    const size_t block_bytes_out =
        type->block_elements * fs_format_bytes(range->conversion->format);
    size_t start, end, first, last;

    if (n_bytes == range->blocks_bytes) {
        decode_part(range, blocks, range->skip, range->length, range->out);
        return;
    }
    start = (size_t)(at / stride_bytes) * block_bytes_out;
    end = start + n_bytes / stride_bytes * block_bytes_out;
    first = start > range->skip ? start : range->skip;
    last = end < range->skip + range->length ? end : range->skip + range->length;
    decode_part(range, blocks, first - start, last - first, range->out + (first - range->skip));
}

static void copy_headers(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    memcpy((uint8_t *)argument + at, bytes, n_bytes);
}

/* Get the headers or tail that the span's row needs, if any, and decode its blocks. */
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

/* Return where the bytes of the span end, its headers or tail included. */
static uint64_t end_of(const struct dequant_span *span)
{
    const uint64_t blocks_end = span->blocks_offset + span->blocks_bytes;
    const uint64_t headers_end = span->headers_offset + span->headers_bytes;

    return blocks_end > headers_end ? blocks_end : headers_end;
}

int fs_decoded_read_unchecked(const struct gguf_model *model, const struct gguf_tensor *tensor,
                              const struct fs_conversion *conversion, uint64_t offset,
                              size_t length, char *out, uint64_t *end_offset)
{
    const struct dequant_type *type = tensor->type;
    const struct dequant_shape shape = {tensor->ne[0], tensor->n_elements};
    const struct gguf_source *file = &model->files[tensor->file_index];
    const size_t number_bytes = fs_format_bytes(conversion->format);
    const uint64_t end = fs_format_count(conversion->format, offset + length + number_bytes - 1);
    uint8_t headers[DEQUANT_MAX_HEADER_BYTES];

    while (length > 0) {
        const struct dequant_span span = dequant_span_of(
            type, shape, fs_format_count(conversion->format, offset), end, UINT64_MAX);
        const uint64_t span_end = tensor->file_offset + end_of(&span);
        struct range range = {.tensor = tensor,
                              .conversion = conversion,
                              .row = {headers, span.row_index},
                              .blocks_bytes = (size_t)span.blocks_bytes,
                              .out = out};
        int result;

        range.skip = (size_t)(offset - span.first_element * number_bytes);
        range.length = (size_t)span.n_blocks * type->block_elements * number_bytes - range.skip;
        if (range.length > length)
            range.length = length;
        result = read_span(file, &span, headers, &range);
        if (result < 0)
            return result;
        if (span_end > *end_offset)
            *end_offset = span_end;
        offset += range.length;
        out += range.length;
        length -= range.length;
    }
    return 0;
}

int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    const struct fs_conversion *conversion, uint64_t offset, size_t length,
                    char *out)
{
    uint64_t end_offset = tensor->file_offset;
    const int result =
        fs_decoded_read_unchecked(model, tensor, conversion, offset, length, out, &end_offset);

    return result < 0 ? result : gguf_source_check(&model->files[tensor->file_index], end_offset);
}

/* ---- lines ---- */

/* Lines of whole blocks that lie at equal distances in the file. */
struct block_lines {
    const struct gguf_tensor *tensor;
    const struct fs_conversion *conversion;
    const struct fs_lines *lines;
    size_t line_bytes;
    size_t pitch_bytes;
    size_t extent_bytes; /* from the first line's start to the last one's end */
    char *out;
    bool is_complete;
};

/* Lines lie far apart, so the CPU does not foresee them: ask for the one that many lines later. */
#define LINES_AHEAD 32u

static void load_ahead(const uint8_t *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i += 64)
        __builtin_prefetch(bytes + i, 0, 2);
}

static void decode_lines(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    struct block_lines *reading = argument;
    const struct fs_lines *lines = reading->lines;
    const size_t n_blocks = lines->width / reading->tensor->type->block_elements;
    const size_t out_bytes = lines->width * fs_format_bytes(reading->conversion->format);
    const bool is_stored = fs_is_stored_as(reading->tensor, reading->conversion);
    /* Lines that are decoded together, because they are short. */
    const size_t at_once = BOUNCE_ELEMENTS / lines->width;
    float bounce[BOUNCE_ELEMENTS];
    char *out = reading->out;
    size_t n_decoded = 0;

    (void)at;
    reading->is_complete = n_bytes == reading->extent_bytes;
    for (size_t i = 0; reading->is_complete && i < lines->n_lines; i++) {
        const uint8_t *line = bytes + i * reading->pitch_bytes;

        if (i + LINES_AHEAD < lines->n_lines + lines->n_next)
            load_ahead(line + LINES_AHEAD * reading->pitch_bytes, reading->line_bytes);
        if (is_stored) {
            memcpy(out + i * out_bytes, line, out_bytes);
            continue;
        }
        fs_decode_blocks(reading->tensor, (struct dequant_row){0}, line,
                         bounce + n_decoded++ * lines->width, n_blocks);
        if (n_decoded == at_once || i == lines->n_lines - 1) {
            fs_convert(reading->conversion, bounce, out, n_decoded * lines->width);
            out += n_decoded * out_bytes;
            n_decoded = 0;
        }
    }
}

/* Return true if the lines could be read together. */
static bool read_block_lines(const struct gguf_source *file, const struct gguf_tensor *tensor,
                             const struct fs_conversion *conversion, const struct fs_lines *lines,
                             char *out, uint64_t *end_offset)
{
    const struct dequant_type *type = tensor->type;
    const uint64_t mask = type->block_elements - 1;
    const int block_bits = __builtin_ctz(type->block_elements);
    struct block_lines reading = {
        .tensor = tensor, .conversion = conversion, .lines = lines, .out = out};
    uint64_t start;

    if (!file->mapping || dequant_has_row_layout(type) || lines->width > BOUNCE_ELEMENTS ||
        ((lines->first | lines->pitch | lines->width) & mask) != 0)
        return false;
    reading.line_bytes = (lines->width >> block_bits) * type->block_bytes;
    reading.pitch_bytes = (size_t)(lines->pitch >> block_bits) * type->block_bytes;
    reading.extent_bytes = (lines->n_lines - 1) * reading.pitch_bytes + reading.line_bytes;
    start = tensor->file_offset + (lines->first >> block_bits) * type->block_bytes;
    if (gguf_source_lend_unchecked(file, start, reading.extent_bytes, 1, decode_lines, &reading) <
            0 ||
        !reading.is_complete)
        return false;
    if (start + reading.extent_bytes > *end_offset)
        *end_offset = start + reading.extent_bytes;
    return true;
}

int fs_decoded_read_lines(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          const struct fs_conversion *conversion, const struct fs_lines *lines,
                          char *out, uint64_t *end_offset)
{
    const size_t number_bytes = fs_format_bytes(conversion->format);
    const size_t n_bytes = lines->width * number_bytes;
    int result = 0;

    if (read_block_lines(&model->files[tensor->file_index], tensor, conversion, lines, out,
                         end_offset))
        return 0;
    for (size_t i = 0; result == 0 && i < lines->n_lines; i++)
        result = fs_decoded_read_unchecked(model, tensor, conversion,
                                           (lines->first + i * lines->pitch) * number_bytes,
                                           n_bytes, out + i * n_bytes, end_offset);
    return result;
}
