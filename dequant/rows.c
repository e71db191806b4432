#include "dequant/rows.h"

#include <assert.h>
#include <errno.h>

int dequant_rows_bytes(const struct dequant_type *type, uint64_t row_elements, uint64_t n_rows,
                       uint64_t *n_bytes)
{
    uint64_t size_bytes;

    if (type->rows_bytes)
        return type->rows_bytes(row_elements, n_rows, n_bytes);
    if (row_elements % type->block_elements != 0 || n_rows % type->interleave_rows != 0)
        return -EINVAL;
    if (__builtin_mul_overflow(row_elements / type->block_elements, (uint64_t)type->block_bytes,
                               &size_bytes) ||
        __builtin_add_overflow(size_bytes, (uint64_t)type->row_header_bytes, &size_bytes) ||
        __builtin_mul_overflow(size_bytes, n_rows, &size_bytes) ||
        __builtin_add_overflow(size_bytes, (uint64_t)type->tail_bytes, &size_bytes) ||
        size_bytes > INT64_MAX)
        return -EOVERFLOW;
    *n_bytes = size_bytes;
    return 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Divide by the number of elements of a block, which is a power of two for all types. */
static uint64_t block_of(const struct dequant_type *type, uint64_t element)
{
    return element >> __builtin_ctz(type->block_elements);
}

struct dequant_span dequant_span_of(const struct dequant_type *type, struct dequant_shape shape,
                                    uint64_t first, uint64_t end, uint64_t max_bytes)
{
    const uint64_t stride_bytes = dequant_stride_bytes(type);
    const uint64_t room_blocks = max_bytes == UINT64_MAX    ? UINT64_MAX
                                 : max_bytes < stride_bytes ? 1
                                                            : max_bytes / stride_bytes;
    const uint64_t block = block_of(type, first);
    struct dequant_span span = {
        .first_element = block * type->block_elements,
        .n_blocks = least(block_of(type, end - 1) - block + 1, room_blocks),
        .blocks_offset = block * stride_bytes,
    };

    assert(first < end);
    if (dequant_has_row_layout(type)) {
        const uint64_t row_blocks = shape.row_elements / type->block_elements;
        const uint64_t row = block / row_blocks, row_block = block % row_blocks;
        const uint64_t row_bytes = type->row_header_bytes + row_blocks * type->block_bytes;

        span.n_blocks = least(span.n_blocks, row_blocks - row_block);
        span.row_index = (uint32_t)(row % type->interleave_rows);
        span.headers_bytes = (uint32_t)dequant_headers_bytes(type);
        span.headers_offset = (row - span.row_index) * row_bytes;
        span.blocks_offset = span.headers_offset + row_block * stride_bytes;
        if (type->tail_bytes > 0)
            span.headers_offset = shape.n_elements / shape.row_elements * row_bytes;
        else
            span.blocks_offset += span.headers_bytes;
    }
    span.blocks_bytes = span.n_blocks * stride_bytes;
    return span;
}
