#include "gguf/cursor.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct gguf_cursor gguf_cursor_begin(struct gguf_file *file, struct gguf_encoding encoding,
                                     struct gguf_report *report)
{
    return (struct gguf_cursor){.file = file,
                                .size_bytes = gguf_source_end(&file->source),
                                .offset = file->source.start_offset,
                                .encoding = encoding,
                                .report = report};
}

uint64_t gguf_cursor_left(const struct gguf_cursor *cursor)
{
    return cursor->size_bytes - cursor->offset;
}

/* Make the next n_bytes of the file part of its header. */
static bool reach(struct gguf_cursor *cursor, uint64_t n_bytes)
{
    struct gguf_file *file = cursor->file;
    const int result = gguf_header_reach(&file->header, &file->source, cursor->offset + n_bytes);

    if (result < 0)
        cursor->failure = result;
    return result == 0;
}

/* Vocabularies have hundreds of thousands of lengths and strings: this must be fast. */
inline const uint8_t *gguf_cursor_take(struct gguf_cursor *cursor, uint64_t n_bytes)
{
    const uint8_t *bytes;

    if (n_bytes > cursor->size_bytes - cursor->offset) {
        cursor->failure = -ENODATA;
        cursor->string_bytes = 0;
        return NULL;
    }
    if (cursor->file) {
        if (cursor->offset + n_bytes > cursor->file->header.end_offset && !reach(cursor, n_bytes))
            return NULL;
        bytes = gguf_header_at(&cursor->file->header, cursor->offset);
    } else {
        bytes = cursor->data + cursor->offset;
    }
    cursor->offset += n_bytes;
    return bytes;
}

int gguf_cursor_skip(struct gguf_cursor *cursor, uint64_t n_bytes)
{
    return gguf_cursor_take(cursor, n_bytes) ? 0 : cursor->failure;
}

int gguf_cursor_skip_data(struct gguf_cursor *cursor, uint64_t n_bytes)
{
    int result = -ENODATA;

    assert(cursor->file);
    if (n_bytes <= gguf_cursor_left(cursor))
        result = gguf_header_leave_out(&cursor->file->header, cursor->offset, n_bytes);
    if (result < 0)
        cursor->failure = result;
    else
        cursor->offset += n_bytes;
    return result;
}

inline int gguf_cursor_number(struct gguf_cursor *cursor, unsigned width_bytes, uint64_t *number)
{
    const uint8_t *bytes = gguf_cursor_take(cursor, width_bytes);

    if (!bytes)
        return cursor->failure;
    *number = gguf_load_number(bytes, width_bytes, cursor->encoding.big_endian);
    return 0;
}

int gguf_cursor_u32(struct gguf_cursor *cursor, uint32_t *number)
{
    uint64_t wide = 0;
    int result = gguf_cursor_number(cursor, sizeof *number, &wide);

    if (result == 0)
        *number = (uint32_t)wide;
    return result;
}

int gguf_cursor_u64(struct gguf_cursor *cursor, uint64_t *number)
{
    return gguf_cursor_number(cursor, sizeof *number, number);
}

int gguf_cursor_length(struct gguf_cursor *cursor, uint64_t *length)
{
    return gguf_cursor_number(cursor, cursor->encoding.length_bytes, length);
}

inline int gguf_cursor_string(struct gguf_cursor *cursor, struct gguf_string *string)
{
    const uint64_t start = cursor->offset;
    const uint8_t *bytes;
    uint64_t length_bytes = 0;
    int result = gguf_cursor_number(cursor, cursor->encoding.length_bytes, &length_bytes);

    if (result < 0)
        return result;
    bytes = gguf_cursor_take(cursor, length_bytes);
    if (!bytes) {
        cursor->offset = start;
        cursor->string_bytes = length_bytes;
        return cursor->failure;
    }
    *string = (struct gguf_string){(const char *)bytes, length_bytes};
    return 0;
}

int gguf_cursor_skip_strings(struct gguf_cursor *cursor, uint64_t n)
{
    struct gguf_string string;
    int result = 0;

    for (; result == 0 && n > 0; n--)
        result = gguf_cursor_string(cursor, &string);
    return result;
}

int gguf_cursor_fail(const struct gguf_cursor *cursor, const char *what)
{
    const uint64_t left = gguf_cursor_left(cursor);

    switch (cursor->failure) {
    case -ENODATA:
        if (cursor->string_bytes > 0)
            return gguf_cursor_refuse(
                cursor, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, cursor->offset,
                "%s has a length of %" PRIu64 " bytes, but only %" PRIu64
                " are left of the file (unfinished download?)",
                what, cursor->string_bytes, left - cursor->encoding.length_bytes);
        return gguf_cursor_refuse(cursor, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, cursor->offset,
                                  "the file ends inside %s: %" PRIu64
                                  " bytes are left (unfinished download?)",
                                  what, left);
    case -E2BIG:
        return gguf_cursor_refuse(cursor, GGUF_RULE_METADATA_LIMIT, -E2BIG, cursor->offset,
                                  "with %s the metadata take over %" PRIu64
                                  " bytes, the limit for all files of a model",
                                  what, GGUF_MAX_HEADER_BYTES);
    case -EFBIG:
        return gguf_cursor_refuse(cursor, GGUF_RULE_METADATA_HOLES, -EFBIG, cursor->offset,
                                  "with %s over %" PRIu64
                                  " bytes of the metadata are holes of a sparse file, the limit "
                                  "(unfinished download? \"cp --sparse=never\" fills holes)",
                                  what, GGUF_MAX_HEADER_HOLE_BYTES);
    case -EAGAIN:
        return gguf_cursor_refuse(cursor, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, cursor->offset,
                                  "%s is not there yet; all metadata must be there (unfinished "
                                  "download?)",
                                  what);
    case -EIO:
        return gguf_cursor_refuse(
            cursor, GGUF_RULE_READ, -EIO, cursor->offset,
            "%s cannot be read: the file has just become shorter, or its disk "
            "fails",
            what);
    default:
        return gguf_cursor_refuse(
            cursor, cursor->failure == -ENOMEM ? GGUF_RULE_MEMORY : GGUF_RULE_READ, cursor->failure,
            cursor->offset, "%s: %s", what, strerror(-cursor->failure));
    }
}
