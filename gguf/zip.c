#include "gguf/zip.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOCAL_SIGNATURE     0x04034b50u
#define ENTRY_SIGNATURE     0x02014b50u
#define END_SIGNATURE       0x06054b50u
#define END64_SIGNATURE     0x06064b50u
#define LOCATOR64_SIGNATURE 0x07064b50u

#define LOCAL_BYTES     30u
#define ENTRY_BYTES     46u
#define END_BYTES       22u
#define END64_BYTES     56u
#define LOCATOR64_BYTES 20u
#define MAX_COMMENT     65535u

/* A number of an entry that is in its ZIP64 field, and the field's id. */
#define IN_ZIP64    0xffffffffu
#define ZIP64_EXTRA 1u

#define FLAG_ENCRYPTED 1u

/* Report that the file contradicts itself. */
#define REFUSE(offset, ...) gguf_error(report, GGUF_RULE_ZIP, -EINVAL, gguf_at(offset), __VA_ARGS__)

/* ---- fields ---- */

static struct gguf_cursor cursor_of(const uint8_t *bytes, uint64_t n_bytes)
{
    return (struct gguf_cursor){.data = bytes, .size_bytes = n_bytes};
}

/* Return a field, which must lie within the bytes. */
static uint64_t field(const uint8_t *bytes, size_t offset, unsigned width_bytes)
{
    return gguf_load_number(bytes + offset, width_bytes, false);
}

static uint32_t signature_of(const uint8_t *bytes)
{
    return (uint32_t)field(bytes, 0, 4);
}

static int fail_read(int code, uint64_t offset, const char *what, struct gguf_report *report)
{
    return gguf_error(report, code == -ENOMEM ? GGUF_RULE_MEMORY : GGUF_RULE_READ, code,
                      gguf_at(offset), "ZIP: %s: %s", what, strerror(-code));
}

/* ---- the end of the directory ---- */

struct end {
    uint64_t offset; /* of the record that follows the directory */
    uint64_t n_members, directory_bytes, directory_offset;
};

/*
 * Find the end record, which is followed by a comment and the end of the file. Returns 1, 0 if it
 * is missing, or a negative errno.
 */
static int find_end(const struct gguf_source *source, uint8_t record[END_BYTES], uint64_t *offset)
{
    const uint64_t limit = END_BYTES + MAX_COMMENT, end = source->size_bytes;
    const size_t n_bytes = (size_t)(end < limit ? end : limit);
    uint8_t *tail;
    bool is_found = false;
    int result;

    if (!gguf_source_has(source, end - n_bytes, n_bytes))
        return 0; /* it is growing */
    tail = malloc(n_bytes + 1);
    result = tail ? gguf_source_read(source, end - n_bytes, n_bytes, tail) : -ENOMEM;

    for (size_t after = END_BYTES; result == 0 && !is_found && after <= n_bytes; after++) {
        const uint8_t *at = tail + n_bytes - after;

        is_found = signature_of(at) == END_SIGNATURE && field(at, 20, 2) == after - END_BYTES;
        if (is_found) {
            memcpy(record, at, END_BYTES);
            *offset = end - after;
        }
    }
    free(tail);
    return result < 0 ? result : is_found;
}

/* Read the ZIP64 record, if there is one: it and its locator lie before the end record. */
static int read_end64(const struct gguf_source *source, struct end *end, struct gguf_report *report)
{
    uint8_t bytes[END64_BYTES + LOCATOR64_BYTES];
    int result;

    if (end->offset < sizeof bytes)
        return 0;
    result = gguf_source_read(source, end->offset - sizeof bytes, sizeof bytes, bytes);
    if (result < 0)
        return fail_read(result, end->offset - sizeof bytes, "the end of its directory", report);
    if (signature_of(bytes + END64_BYTES) != LOCATOR64_SIGNATURE)
        return 0;
    end->offset -= sizeof bytes;
    if (signature_of(bytes) != END64_SIGNATURE)
        return REFUSE(end->offset, "ZIP64 end record: it starts with %08" PRIx32 " instead of %08x",
                      signature_of(bytes), END64_SIGNATURE);
    end->n_members = field(bytes, 32, 8);
    end->directory_bytes = field(bytes, 40, 8);
    end->directory_offset = field(bytes, 48, 8);
    return 0;
}

static int read_end(const struct gguf_source *source, struct end *end, struct gguf_report *report)
{
    uint8_t record[END_BYTES];
    int result = find_end(source, record, &end->offset);

    if (result < 0)
        return fail_read(result, GGUF_NO_OFFSET, "the end of its directory", report);
    if (result == 0)
        return 0;
    end->n_members = field(record, 10, 2);
    end->directory_bytes = field(record, 12, 4);
    end->directory_offset = field(record, 16, 4);
    result = read_end64(source, end, report);
    return result < 0 ? result : 1;
}

static int check_end(const struct end *end, struct gguf_report *report)
{
    if (end->directory_bytes > end->offset)
        return REFUSE(end->offset,
                      "ZIP end record: the directory has %" PRIu64 " bytes, but only %" PRIu64
                      " precede the record",
                      end->directory_bytes, end->offset);
    if (end->directory_offset > end->offset - end->directory_bytes)
        return REFUSE(end->offset,
                      "ZIP end record: the directory is at byte %" PRIu64 " and has %" PRIu64
                      " bytes, so it does not end before the record",
                      end->directory_offset, end->directory_bytes);
    if (end->directory_bytes > GGUF_MAX_ZIP_DIRECTORY_BYTES)
        return gguf_error(report, GGUF_RULE_ZIP, -E2BIG, gguf_at(end->offset),
                          "ZIP end record: the directory has %" PRIu64
                          " bytes, the limit is %" PRIu64,
                          end->directory_bytes, GGUF_MAX_ZIP_DIRECTORY_BYTES);
    if (end->n_members > end->directory_bytes / ENTRY_BYTES)
        return REFUSE(end->offset,
                      "ZIP end record: there are %" PRIu64
                      " members, but the directory has %" PRIu64 " bytes and an entry at least %u",
                      end->n_members, end->directory_bytes, ENTRY_BYTES);
    return 0;
}

/* ---- the directory ---- */

/*
 * If something was prepended to the ZIP file, its offsets may still count from its own start. The
 * directory then ends where its end record starts.
 */
static int find_directory(const struct gguf_source *source, const struct end *end,
                          struct gguf_zip *zip, struct gguf_report *report)
{
    uint8_t bytes[4] = {0};
    int result = 0;

    zip->directory_offset = end->directory_offset;
    if (end->n_members > 0)
        result = gguf_source_read(source, zip->directory_offset, sizeof bytes, bytes);
    if (result < 0)
        return fail_read(result, zip->directory_offset, "its directory", report);
    if (signature_of(bytes) != ENTRY_SIGNATURE) {
        zip->directory_offset = end->offset - end->directory_bytes;
        zip->base_offset = zip->directory_offset - end->directory_offset;
    }
    return 0;
}

int gguf_zip_open(const struct gguf_source *source, struct gguf_zip *zip,
                  struct gguf_report *report)
{
    struct end end = {0};
    int result = read_end(source, &end, report);

    *zip = (struct gguf_zip){0};
    if (result <= 0)
        return result;
    result = check_end(&end, report);
    if (result == 0)
        result = find_directory(source, &end, zip, report);
    if (result < 0)
        return result;
    zip->n_members = end.n_members;
    zip->directory = malloc(end.directory_bytes + 1);
    result = zip->directory ? gguf_source_read(source, zip->directory_offset, end.directory_bytes,
                                               zip->directory)
                            : -ENOMEM;
    if (result < 0)
        return fail_read(result, zip->directory_offset, "its directory", report);
    zip->cursor = cursor_of(zip->directory, end.directory_bytes);
    return 1;
}

void gguf_zip_close(struct gguf_zip *zip)
{
    free(zip->directory);
    *zip = (struct gguf_zip){0};
}

/* The numbers of an entry that may be in its ZIP64 extra field, in the order they have there. */
struct wide_numbers {
    uint64_t unpacked_bytes, packed_bytes, header_offset;
};

/* Replace the numbers that are in the ZIP64 field. Returns false if it lacks one. */
static bool read_wide_numbers(struct gguf_cursor extra, struct wide_numbers *numbers)
{
    uint64_t *const wide[] = {&numbers->unpacked_bytes, &numbers->packed_bytes,
                              &numbers->header_offset};
    uint64_t id = 0, n_bytes = 0;
    bool is_there = false;

    while (!is_there && gguf_cursor_number(&extra, 2, &id) == 0 &&
           gguf_cursor_number(&extra, 2, &n_bytes) == 0) {
        is_there = id == ZIP64_EXTRA;
        if (is_there && n_bytes <= gguf_cursor_left(&extra))
            extra.size_bytes = extra.offset + n_bytes;
        else if (gguf_cursor_skip(&extra, n_bytes) < 0)
            break;
    }
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (*wide[i] == IN_ZIP64 && (!is_there || gguf_cursor_u64(&extra, wide[i]) < 0))
            return false;
    return true;
}

static enum gguf_zip_packing packing_of(const uint8_t *entry)
{
    if (field(entry, 8, 2) & FLAG_ENCRYPTED)
        return GGUF_ZIP_ENCRYPTED;
    return field(entry, 10, 2) == 0 ? GGUF_ZIP_STORED : GGUF_ZIP_COMPRESSED;
}

static int fill_in(const struct gguf_zip *zip, const uint8_t *entry, struct gguf_cursor extra,
                   struct gguf_zip_member *member, struct gguf_report *report)
{
    struct wide_numbers numbers = {field(entry, 24, 4), field(entry, 20, 4), field(entry, 42, 4)};

    if (!read_wide_numbers(extra, &numbers))
        return REFUSE(member->entry_offset,
                      "ZIP member %s: its sizes or its offset are in a ZIP64 field that it "
                      "does not have",
                      gguf_quote(member->name).text);
    member->packing = packing_of(entry);
    member->size_bytes = numbers.packed_bytes;
    if (member->packing == GGUF_ZIP_STORED && numbers.packed_bytes != numbers.unpacked_bytes)
        return REFUSE(member->entry_offset,
                      "ZIP member %s: it is stored, but has %" PRIu64
                      " bytes in the file and %" PRIu64 " unpacked",
                      gguf_quote(member->name).text, numbers.packed_bytes, numbers.unpacked_bytes);
    if (__builtin_add_overflow(numbers.header_offset, zip->base_offset, &member->header_offset))
        return gguf_error(report, GGUF_RULE_ZIP, -EOVERFLOW, gguf_at(member->entry_offset),
                          "ZIP member %s: its offset %" PRIu64
                          " and the start of the ZIP file at byte %" PRIu64 " add up to over 2^64",
                          gguf_quote(member->name).text, numbers.header_offset, zip->base_offset);
    return 0;
}

int gguf_zip_next(struct gguf_zip *zip, struct gguf_zip_member *member, struct gguf_report *report)
{
    struct gguf_cursor *cursor = &zip->cursor, extra;
    const uint64_t offset = zip->directory_offset + cursor->offset;
    const uint8_t *entry, *name, *more;
    int result;

    if (zip->n_read == zip->n_members)
        return 0;
    zip->n_read++;
    entry = gguf_cursor_take(cursor, ENTRY_BYTES);
    if (!entry || signature_of(entry) != ENTRY_SIGNATURE)
        return REFUSE(offset, "ZIP directory: there is no entry for member %" PRIu64 " of %" PRIu64,
                      zip->n_read, zip->n_members);
    name = gguf_cursor_take(cursor, field(entry, 28, 2));
    more = name ? gguf_cursor_take(cursor, field(entry, 30, 2)) : NULL;
    if (!more || gguf_cursor_skip(cursor, field(entry, 32, 2)) < 0)
        return REFUSE(offset,
                      "ZIP directory: the entry for member %" PRIu64 " of %" PRIu64
                      " ends after the directory",
                      zip->n_read, zip->n_members);
    extra = cursor_of(more, field(entry, 30, 2));
    *member = (struct gguf_zip_member){.name = {(const char *)name, field(entry, 28, 2)},
                                       .entry_offset = offset};
    result = fill_in(zip, entry, extra, member, report);
    return result < 0 ? result : 1;
}

int gguf_zip_find_data(const struct gguf_source *source, const struct gguf_zip_member *member,
                       uint64_t *offset, struct gguf_report *report)
{
    const uint64_t end = source->size_bytes;
    uint8_t local[LOCAL_BYTES];
    int result;

    if (member->header_offset > end || end - member->header_offset < LOCAL_BYTES)
        return REFUSE(member->entry_offset,
                      "ZIP member %s: it is at byte %" PRIu64 ", but the file ends at %" PRIu64,
                      gguf_quote(member->name).text, member->header_offset, end);
    result = gguf_source_read(source, member->header_offset, sizeof local, local);
    if (result < 0)
        return fail_read(result, member->header_offset, "a member", report);
    if (signature_of(local) != LOCAL_SIGNATURE)
        return REFUSE(member->header_offset,
                      "ZIP member %s: it starts with %08" PRIx32 " instead of %08x",
                      gguf_quote(member->name).text, signature_of(local), LOCAL_SIGNATURE);
    *offset = member->header_offset + LOCAL_BYTES + field(local, 26, 2) + field(local, 28, 2);
    if (*offset > end || member->size_bytes > end - *offset)
        return REFUSE(member->entry_offset,
                      "ZIP member %s: it has %" PRIu64 " bytes from byte %" PRIu64
                      " on, but the file ends at %" PRIu64,
                      gguf_quote(member->name).text, member->size_bytes, *offset, end);
    return 0;
}
