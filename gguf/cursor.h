/*
 * Cursor: a position in unchecked bytes, which no other code reads. It never reads past their end,
 * and converts every number to the host's byte order.
 *
 * The bytes are in memory, or come from a file, whose header is copied as far as the cursor goes. A
 * function that fails leaves the cursor where it was and the result unwritten, and sets the
 * cursor's `failure`, which gguf_cursor_fail() turns into a message.
 */
#pragma once

#include "gguf/file.h"
#include "gguf/report.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How a file writes its numbers. */
struct gguf_encoding {
    bool big_endian;
    uint8_t length_bytes; /* of a string's or an array's length: 4 in GGUF v1, else 8 */
};

struct gguf_cursor {
    const uint8_t *data;    /* NULL if there is a file */
    struct gguf_file *file; /* NULL if there are data */
    uint64_t size_bytes;
    uint64_t offset; /* from `data` or the start of the file; at most size_bytes */
    struct gguf_encoding encoding;
    int failure;           /* of the last function that failed, as a negative errno */
    uint64_t string_bytes; /* of the string that it could not read; 0: no string, or no length */

    /* For messages: what is read. The place's own offset is not used. */
    struct gguf_place place;
    struct gguf_report *report;
};

/* A cursor at the start of a file's model. A file can have one cursor at a time. */
struct gguf_cursor gguf_cursor_begin(struct gguf_file *file, struct gguf_encoding encoding,
                                     struct gguf_report *report);

/* Return the number of bytes from the cursor to the end. */
uint64_t gguf_cursor_left(const struct gguf_cursor *cursor);

/*
 * Take the next n_bytes. Returns a pointer to them, which is valid as long as the memory or the
 * file's header, or NULL. The other functions return 0, or `failure`:
 *
 *   -ENODATA   fewer bytes are left
 *   others     from gguf_header_reach(), if the bytes are in a file
 */
const uint8_t *gguf_cursor_take(struct gguf_cursor *cursor, uint64_t n_bytes);

int gguf_cursor_skip(struct gguf_cursor *cursor, uint64_t n_bytes);

/* Skip the data of a tensor and leave them out of the header's copy. */
int gguf_cursor_skip_data(struct gguf_cursor *cursor, uint64_t n_bytes);

/* Read an unsigned number of 1, 2, 4 or 8 bytes. */
int gguf_cursor_number(struct gguf_cursor *cursor, unsigned width_bytes, uint64_t *number);

int gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *number);
int gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *number);

/* Convert a stored number of 1, 2, 4 or 8 bytes. */
static inline uint64_t gguf_load_number(const uint8_t *bytes, unsigned width_bytes, bool big_endian)
{
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;

    switch (width_bytes) {
    case sizeof u16:
        memcpy(&u16, bytes, sizeof u16);
        return big_endian ? be16toh(u16) : le16toh(u16);
    case sizeof u32:
        memcpy(&u32, bytes, sizeof u32);
        return big_endian ? be32toh(u32) : le32toh(u32);
    case sizeof u64:
        memcpy(&u64, bytes, sizeof u64);
        return big_endian ? be64toh(u64) : le64toh(u64);
    default:
        assert(width_bytes == 1);
        return *bytes;
    }
}

/* Read a length or count, whose width depends on the file's version. */
int gguf_cursor_length(struct gguf_cursor *cursor, uint64_t *length);

/* Read a length and that many bytes. The string points to them. */
int gguf_cursor_string(struct gguf_cursor *cursor, struct gguf_string *string);

/* Skip n strings. If it fails, the cursor is at the string that could not be read. */
int gguf_cursor_skip_strings(struct gguf_cursor *cursor, uint64_t n);

/*
 * Report that `what`, a part of the cursor's place, cannot be read, and the cause. The finding's
 * offset is the cursor's. Call it after one of the functions above has failed. Returns a negative
 * errno.
 */
int gguf_cursor_fail(const struct gguf_cursor *cursor, const char *what);

/* Report an error at the cursor's place and this offset. Returns the code. */
#define gguf_cursor_refuse(cursor, rule, code, offset, ...)                                        \
    gguf_error((cursor)->report, rule, code, gguf_moved((cursor)->place, offset), __VA_ARGS__)
