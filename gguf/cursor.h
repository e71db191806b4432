/*
 * The cursor: a place in bytes that nobody has checked. It is the only code that reads such bytes,
 * never reads past their end, and brings every number to the host's byte order.
 *
 * Every function returns 0, or -ENODATA if the bytes end before what it should read; the cursor
 * then stays where it was and nothing is written to the result.
 */
#ifndef GGUFS_GGUF_CURSOR_H
#define GGUFS_GGUF_CURSOR_H

#include "gguf/report.h"

#include <stdbool.h>
#include <stdint.h>

/* How a file writes its numbers. */
struct gguf_encoding {
    bool big_endian;
    uint8_t length_bytes; /* of a string's or an array's length: 4 in GGUF v1, else 8 */
};

struct gguf_cursor {
    const uint8_t *data;
    uint64_t size_bytes;
    uint64_t offset; /* from data; at most size_bytes */
    struct gguf_encoding encoding;
};

/* The bytes from the cursor to the end. */
uint64_t gguf_cursor_left(const struct gguf_cursor *cursor);

int gguf_cursor_skip(struct gguf_cursor *cursor, uint64_t n_bytes);

/* An unsigned number of 1, 2, 4 or 8 bytes. */
int gguf_cursor_number(struct gguf_cursor *cursor, unsigned width_bytes, uint64_t *number);

int gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *number);
int gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *number);

/* A length or a count as wide as the encoding says. */
int gguf_cursor_length(struct gguf_cursor *cursor, uint64_t *length);

/* A length and that many bytes, which the result points to. */
int gguf_cursor_string(struct gguf_cursor *cursor, struct gguf_string *string);

#endif
