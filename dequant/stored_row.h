/* Row headers, and the position of a row among rows that are stored together. */
#pragma once

#include <stdint.h>

/*
 * A decoder's arguments in addition to the blocks of a row; all zero for types without row headers,
 * interleaved rows and tail.
 */
struct dequant_row {
    const void *headers; /* of the group, or the tail; dequant_headers_bytes(), any alignment */
    uint32_t index;      /* of the row in its group, below interleave_rows */
};
