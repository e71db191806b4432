/*
 * Finds the elements of a tensor in its data, for types with and without row headers, interleaved
 * rows and tail. Elements are counted through the tensor in row-major order: element row *
 * row_elements + i is number i of that row.
 */
#pragma once

#include "dequant/types.h"

/* The largest dequant_headers_bytes(), over all types. */
#define DEQUANT_MAX_HEADER_BYTES 256

/* Return true if the type has row headers, interleaved rows or a tail. */
static inline bool dequant_has_row_layout(const struct dequant_type *type)
{
    return type->row_header_bytes > 0 || type->interleave_rows > 1 || type->tail_bytes > 0;
}

/*
 * Set *n_bytes to the size of a tensor of n_rows rows of row_elements each. Returns 0, -EINVAL if a
 * row is not a whole number of blocks or the rows not a whole number of groups, or -EOVERFLOW if
 * the size is over INT64_MAX; then *n_bytes stays as it is.
 */
int dequant_rows_bytes(const struct dequant_type *type, uint64_t row_elements, uint64_t n_rows,
                       uint64_t *n_bytes);

/* The shape of a tensor of whole rows: the numbers that determine its layout. */
struct dequant_shape {
    uint64_t row_elements;
    uint64_t n_elements; /* of the tensor */
};

/*
 * Consecutive stored blocks and their row headers, the input of a decoder. Offsets count from the
 * start of the tensor.
 */
struct dequant_span {
    uint64_t first_element; /* of the first block */
    uint64_t n_blocks;
    uint64_t blocks_offset;
    uint64_t blocks_bytes; /* n_blocks * dequant_stride_bytes() */
    uint64_t headers_offset;
    uint32_t headers_bytes; /* dequant_headers_bytes(), at most DEQUANT_MAX_HEADER_BYTES */
    uint32_t row_index;     /* for struct dequant_row */
};

/*
 * Return the longest run of stored blocks that one call can decode, from the block of element
 * `first` on. It ends with the block of element `end` - 1, or earlier at the end of the row if
 * dequant_has_row_layout() is true, and has at most max_bytes, but at least one block. Requires
 * first < end <= n_elements, and that dequant_rows_bytes() succeeds for the tensor.
 */
struct dequant_span dequant_span_of(const struct dequant_type *type, struct dequant_shape shape,
                                    uint64_t first, uint64_t end, uint64_t max_bytes);
