#include "gguf/locate.h"

#include "gguf/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Models in a ZIP file that are listed, if it has several. */
#define MAX_LISTED 16

/* A member that may be a model. */
struct member {
    struct gguf_string name;
    enum { STORED, COMPRESSED, ENCRYPTED } packing;
    uint64_t entry_offset; /* of its entry in the directory, for messages */
    uint64_t offset;       /* of its data, if stored; of its local header before that is read */
    uint64_t size_bytes;   /* of its data as they are in the file */
};

/* Models that were found in an archive. */
struct search {
    const struct gguf_source *source;
    struct gguf_report *report;
    struct member first;
    struct gguf_quoted name; /* of the first */
    uint64_t n;
};

/* Returns 1, 0 if the member's bytes are not the start of a model, or a negative errno. */
static int has_start_of_model(const struct gguf_source *source, const struct member *member)
{
    uint8_t bytes[GGUF_START_BYTES];
    struct gguf_start start = {.bytes = bytes,
                               .n_bytes = MIN(sizeof bytes, member->size_bytes),
                               .file_bytes = member->size_bytes};
    int result;

    if (start.n_bytes == 0)
        return 0;
    result = gguf_source_read(source, member->offset, start.n_bytes, bytes);
    return result < 0 ? result : gguf_find_format(&start) != NULL;
}

static const char *adjective_of(const struct member *member)
{
    return member->packing == ENCRYPTED ? "encrypted" : "compressed";
}

static void note_model(const struct search *search, const struct member *member, const char *name)
{
    if (member->packing == STORED)
        gguf_note(search->report, GGUF_RULE_SEVERAL_MODELS, GGUF_NO_PLACE,
                  "%s: -o offset=%" PRIu64 ",size=%" PRIu64, name, member->offset,
                  member->size_bytes);
    else
        gguf_note(search->report, GGUF_RULE_SEVERAL_MODELS, GGUF_NO_PLACE,
                  "%s: %s, so it must be unpacked first (unzip)", name, adjective_of(member));
}

/* Add a model. If there are several, notes list them. */
static void add_model(struct search *search, const struct member *member)
{
    const struct gguf_quoted name = gguf_quote(member->name);

    if (search->n == 0) {
        search->first = *member;
        search->name = name;
    } else if (search->n < MAX_LISTED) {
        if (search->n == 1)
            note_model(search, &search->first, search->name.text);
        note_model(search, member, name.text);
    }
    search->n++;
}

/* Get the place of the only model that was found. Returns 1 or a negative errno. */
static int take_only(const struct search *search, const char *archive, uint64_t *offset,
                     uint64_t *size_bytes)
{
    const struct member *only = &search->first;

    if (search->n > 1)
        return gguf_error(search->report, GGUF_RULE_SEVERAL_MODELS, -EINVAL, GGUF_NO_PLACE,
                          "holds %" PRIu64 " models in a %s; choose one with -o "
                          "offset=BYTES,size=BYTES",
                          search->n, archive);
    if (only->packing != STORED)
        return gguf_error(search->report, GGUF_RULE_PACKED, -EINVAL, gguf_at(only->entry_offset),
                          "ZIP member %s is %s, so it cannot be read in place; unpack it first "
                          "(unzip)",
                          search->name.text, adjective_of(only));
    *offset = only->offset;
    *size_bytes = only->size_bytes;
    return 1;
}

/* ---- ZIP files ---- */

/*
 * Signatures and sizes of records. Source: PKWARE, APPNOTE.TXT 6.3.10, sections 4.3.7 (local
 * header), 4.3.12 (directory), 4.3.14 to 4.3.16 (ends of the directory) and 4.5.3 (ZIP64). libzip
 * does not give the offset of a member's data in the file.
 */
#define LOCAL_SIGNATURE     0x04034b50u
#define ENTRY_SIGNATURE     0x02014b50u
#define END_SIGNATURE       0x06054b50u
#define END64_SIGNATURE     0x06064b50u
#define LOCATOR64_SIGNATURE 0x07064b50u
enum { LOCAL_BYTES = 30, ENTRY_BYTES = 46, END_BYTES = 22, LOCATOR64_BYTES = 20 };
enum { ENDS64_BYTES = 56 + LOCATOR64_BYTES, MAX_COMMENT = 65535 };

/* A number of an entry that is in its ZIP64 field, and the field's id. */
#define IN_ZIP64    0xffffffffu
#define ZIP64_EXTRA 1u

#define FLAG_ENCRYPTED 1u

/* Limit of a directory. A llamafile's has some kilobytes. */
#define MAX_DIRECTORY_BYTES ((uint64_t)16 << 20)

/* The directory of a ZIP file. */
struct zip {
    uint8_t *bytes; /* a copy; owned */
    uint64_t offset, size_bytes;
    uint64_t end; /* where the record begins that follows the directory */
    uint64_t n_members, n_read;
    uint64_t base_offset; /* of the ZIP file in the file; programs may be prepended to it */
    struct gguf_cursor cursor;
};

#define REFUSE_ZIP(code, offset, ...)                                                              \
    gguf_error(search->report, GGUF_RULE_ZIP, code, gguf_at(offset), "ZIP" __VA_ARGS__)

/* Return a field, which must lie within the bytes. */
static uint64_t field(const uint8_t *bytes, size_t offset, unsigned width_bytes)
{
    return gguf_load_number(bytes + offset, width_bytes, false);
}

static int read_zip(const struct search *search, uint64_t offset, uint64_t n_bytes, void *out,
                    const char *what)
{
    const int result = gguf_source_read(search->source, offset, n_bytes, out);

    return result == 0 ? 0
                       : gguf_error(search->report, GGUF_RULE_READ, result, gguf_at(offset),
                                    "ZIP: %s: %s", what, strerror(-result));
}

/*
 * Read the end record, which a comment and the end of the file follow, or the ZIP64 record before
 * it. `tail` are the last n_bytes of the file. Returns 1, 0 if nothing is found, or a negative
 * errno.
 */
static int read_end(const struct search *search, const uint8_t *tail, size_t n_bytes,
                    struct zip *zip)
{
    size_t after = END_BYTES;
    const uint8_t *at;

    while (after <= n_bytes && (field(tail, n_bytes - after, 4) != END_SIGNATURE ||
                                field(tail, n_bytes - after + 20, 2) != after - END_BYTES))
        after++;
    if (after > n_bytes)
        return 0;
    at = tail + n_bytes - after;
    zip->n_members = field(at, 10, 2);
    zip->size_bytes = field(at, 12, 4);
    zip->offset = field(at, 16, 4);
    zip->end = search->source->size_bytes - after;
    if (at < tail + ENDS64_BYTES || field(at - LOCATOR64_BYTES, 0, 4) != LOCATOR64_SIGNATURE)
        return 1;
    at -= ENDS64_BYTES;
    zip->end -= ENDS64_BYTES;
    if (field(at, 0, 4) != END64_SIGNATURE)
        return REFUSE_ZIP(-EINVAL, zip->end,
                          "64 end record: it starts with %08" PRIx64 " instead of %08x",
                          field(at, 0, 4), END64_SIGNATURE);
    zip->n_members = field(at, 32, 8);
    zip->size_bytes = field(at, 40, 8);
    zip->offset = field(at, 48, 8);
    return 1;
}

static int check_end(const struct search *search, const struct zip *zip)
{
    if (zip->size_bytes > zip->end || zip->offset > zip->end - zip->size_bytes)
        return REFUSE_ZIP(-EINVAL, zip->end,
                          " end record: the directory is at byte %" PRIu64 " and has %" PRIu64
                          " bytes, so it does not end before the record",
                          zip->offset, zip->size_bytes);
    if (zip->size_bytes > MAX_DIRECTORY_BYTES)
        return REFUSE_ZIP(-E2BIG, zip->end,
                          " end record: the directory has %" PRIu64 " bytes, the limit is %" PRIu64,
                          zip->size_bytes, MAX_DIRECTORY_BYTES);
    if (zip->n_members > zip->size_bytes / ENTRY_BYTES)
        return REFUSE_ZIP(-EINVAL, zip->end,
                          " end record: there are %" PRIu64
                          " members, but the directory has %" PRIu64 " bytes and an entry at least "
                          "%d",
                          zip->n_members, zip->size_bytes, ENTRY_BYTES);
    return 0;
}

/*
 * Copy the directory. If something was prepended to the ZIP file, its offsets may still count from
 * its own start: the directory then ends where its end record starts.
 */
static int copy_directory(const struct search *search, struct zip *zip)
{
    int result;

    zip->bytes = calloc(1, zip->size_bytes + sizeof(uint32_t));
    if (!zip->bytes)
        return gguf_system_error(search->report, -ENOMEM, gguf_at(zip->offset));
    result = read_zip(search, zip->offset, zip->size_bytes, zip->bytes, "its directory");
    if (result == 0 && field(zip->bytes, 0, 4) != ENTRY_SIGNATURE) {
        zip->base_offset = zip->end - zip->size_bytes - zip->offset;
        zip->offset = zip->end - zip->size_bytes;
        result = read_zip(search, zip->offset, zip->size_bytes, zip->bytes, "its directory");
    }
    zip->cursor = (struct gguf_cursor){.data = zip->bytes, .size_bytes = zip->size_bytes};
    return result;
}

/* Returns 1, 0 if the file does not end with a ZIP file, or a negative errno. */
static int open_zip(const struct search *search, struct zip *zip)
{
    const uint64_t file_bytes = search->source->size_bytes;
    const size_t n_bytes = MIN(file_bytes, ENDS64_BYTES + END_BYTES + MAX_COMMENT);
    uint8_t *tail;
    int result;

    if (!gguf_source_has(search->source, file_bytes - n_bytes, n_bytes))
        return 0; /* it is growing */
    tail = malloc(n_bytes + 1);
    if (!tail)
        return gguf_system_error(search->report, -ENOMEM, GGUF_NO_PLACE);
    result = read_zip(search, file_bytes - n_bytes, n_bytes, tail, "the end of its directory");
    if (result == 0)
        result = read_end(search, tail, n_bytes, zip);
    free(tail);
    if (result <= 0)
        return result;
    result = check_end(search, zip);
    if (result == 0)
        result = copy_directory(search, zip);
    return result < 0 ? result : 1;
}

/* Replace the numbers that are in the ZIP64 field. Returns false if it lacks one. */
static bool read_wide_numbers(struct gguf_cursor extra, uint64_t numbers[3])
{
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
    for (size_t i = 0; i < 3; i++)
        if (numbers[i] == IN_ZIP64 && (!is_there || gguf_cursor_u64(&extra, &numbers[i]) < 0))
            return false;
    return true;
}

/* Read the next entry of the directory. Returns 1, 0 after the last, or a negative errno. */
static int next_member(const struct search *search, struct zip *zip, struct member *member)
{
    const uint64_t offset = zip->offset + zip->cursor.offset;
    const uint8_t *entry, *name, *more;
    struct gguf_cursor extra;
    uint64_t numbers[3]; /* unpacked bytes, packed bytes, offset: in the order of a ZIP64 field */

    if (zip->n_read == zip->n_members)
        return 0;
    zip->n_read++;
    entry = gguf_cursor_take(&zip->cursor, ENTRY_BYTES);
    if (!entry || field(entry, 0, 4) != ENTRY_SIGNATURE)
        return REFUSE_ZIP(-EINVAL, offset,
                          " directory: there is no entry for member %" PRIu64 " of %" PRIu64,
                          zip->n_read, zip->n_members);
    name = gguf_cursor_take(&zip->cursor, field(entry, 28, 2));
    more = name ? gguf_cursor_take(&zip->cursor, field(entry, 30, 2)) : NULL;
    if (!more || gguf_cursor_skip(&zip->cursor, field(entry, 32, 2)) < 0)
        return REFUSE_ZIP(-EINVAL, offset,
                          " directory: the entry for member %" PRIu64 " of %" PRIu64
                          " ends after the directory",
                          zip->n_read, zip->n_members);
    *member = (struct member){.name = {(const char *)name, field(entry, 28, 2)},
                              .entry_offset = offset,
                              .packing = field(entry, 8, 2) & FLAG_ENCRYPTED ? ENCRYPTED
                                         : field(entry, 10, 2) == 0          ? STORED
                                                                             : COMPRESSED};
    numbers[0] = field(entry, 24, 4);
    numbers[1] = field(entry, 20, 4);
    numbers[2] = field(entry, 42, 4);
    extra = (struct gguf_cursor){.data = more, .size_bytes = field(entry, 30, 2)};
    if (!read_wide_numbers(extra, numbers))
        return REFUSE_ZIP(-EINVAL, offset,
                          " member %s: its sizes or its offset are in a ZIP64 field that it does "
                          "not have",
                          gguf_quote(member->name).text);
    if (member->packing == STORED && numbers[1] != numbers[0])
        return REFUSE_ZIP(-EINVAL, offset,
                          " member %s: it is stored, but has %" PRIu64
                          " bytes in the file and %" PRIu64 " unpacked",
                          gguf_quote(member->name).text, numbers[1], numbers[0]);
    if (__builtin_add_overflow(numbers[2], zip->base_offset, &member->offset))
        return REFUSE_ZIP(-EOVERFLOW, offset,
                          " member %s: its offset %" PRIu64
                          " and the start of the ZIP file at byte %" PRIu64 " add up to over 2^64",
                          gguf_quote(member->name).text, numbers[2], zip->base_offset);
    member->size_bytes = numbers[1];
    return 1;
}

/* Find the data of a member in the file, by its local header. */
static int find_data(const struct search *search, struct member *member)
{
    const uint64_t end = search->source->size_bytes, header_offset = member->offset;
    uint8_t local[LOCAL_BYTES];
    int result;

    if (header_offset > end || end - header_offset < LOCAL_BYTES)
        return REFUSE_ZIP(-EINVAL, member->entry_offset,
                          " member %s: it is at byte %" PRIu64 ", but the file ends at %" PRIu64,
                          gguf_quote(member->name).text, header_offset, end);
    result = read_zip(search, header_offset, sizeof local, local, "a member");
    if (result < 0)
        return result;
    if (field(local, 0, 4) != LOCAL_SIGNATURE)
        return REFUSE_ZIP(-EINVAL, header_offset,
                          " member %s: it starts with %08" PRIx64 " instead of %08x",
                          gguf_quote(member->name).text, field(local, 0, 4), LOCAL_SIGNATURE);
    member->offset += LOCAL_BYTES + field(local, 26, 2) + field(local, 28, 2);
    if (member->offset > end || member->size_bytes > end - member->offset)
        return REFUSE_ZIP(-EINVAL, member->entry_offset,
                          " member %s: it has %" PRIu64 " bytes from byte %" PRIu64
                          " on, but the file ends at %" PRIu64,
                          gguf_quote(member->name).text, member->size_bytes, member->offset, end);
    return 0;
}

/* Packed data cannot be recognized, so the name decides. Returns as has_start_of_model(). */
static int is_model(const struct search *search, struct member *member)
{
    int result;

    if (member->packing != STORED)
        return member->name.length_bytes > strlen(".gguf") &&
               gguf_string_ends_with(member->name, ".gguf");
    if (member->size_bytes == 0)
        return 0;
    result = find_data(search, member);
    if (result < 0)
        return result;
    result = has_start_of_model(search->source, member);
    if (result < 0)
        gguf_error(search->report, GGUF_RULE_READ, result, gguf_at(member->offset),
                   "ZIP member %s: %s", gguf_quote(member->name).text, strerror(-result));
    return result;
}

/* Find the models in a ZIP file, and refuse one without. Returns 0 or a negative errno. */
static int search_zip(struct zip *zip, struct search *search)
{
    struct member member;
    struct gguf_string first_name = {0};
    bool is_checkpoint = false; /* a member has the name that torch.save() gives */
    int result;

    while ((result = next_member(search, zip, &member)) > 0) {
        if (!first_name.data)
            first_name = member.name;
        is_checkpoint |= gguf_string_ends_with(member.name, "data.pkl");
        result = is_model(search, &member);
        if (result < 0)
            return result;
        if (result > 0)
            add_model(search, &member);
    }
    if (result < 0 || search->n > 0)
        return result;
    if (is_checkpoint)
        return gguf_error(search->report, GGUF_RULE_NOT_CONVERTED, -EINVAL, GGUF_NO_PLACE,
                          "is a PyTorch file, not GGUF; llama.cpp's convert_hf_to_gguf.py makes a "
                          "GGUF file of the folder of its checkpoint");
    return gguf_error(search->report, GGUF_RULE_NOT_A_MODEL, -EINVAL, GGUF_NO_PLACE,
                      "is or ends with a ZIP file of %" PRIu64
                      " member%s without a model; the first is %s",
                      zip->n_members, zip->n_members == 1 ? "" : "s", gguf_quote(first_name).text);
}

/* ---- tar archives ---- */

/* Sizes of a tar archive's blocks, and the places of a header's fields. Source: POSIX, pax. */
enum {
    BLOCK = 512,
    NAME_BYTES = 100,
    SIZE_AT = 124,
    TYPE_AT = 156,
    MAGIC_AT = 257,
    MAX_MEMBERS = 100000
};

/* Read a size: octal digits or, after a bit, big-endian bytes, as GNU tar has them. */
static uint64_t read_size(const uint8_t *header)
{
    const bool is_binary = header[SIZE_AT] & 0x80;
    uint64_t size = 0;

    for (size_t i = SIZE_AT + (is_binary ? 4 : 0); i < SIZE_AT + 12; i++) {
        if (!is_binary && (header[i] < '0' || header[i] > '7'))
            break;
        size = is_binary ? size << 8 | header[i] : size << 3 | (uint64_t)(header[i] - '0');
    }
    return size;
}

/* Return the size in the records of an extended header, "LENGTH size=NUMBER\n", or `size`. */
static uint64_t read_pax_size(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes,
                              uint64_t size)
{
    char records[4096] = "";
    const char *at;

    if (n_bytes >= sizeof records || gguf_source_read(source, offset, n_bytes, records) < 0)
        return size;
    at = memmem(records, n_bytes, " size=", 6);
    return at ? strtoull(at + 6, NULL, 10) : size;
}

/* Find the models in a tar archive. Returns 0 or a negative errno. */
static int search_tar(struct search *search)
{
    const uint64_t end = gguf_source_end(search->source);
    uint64_t offset = 0, size, pax_size = UINT64_MAX;

    for (size_t i = 0; i < MAX_MEMBERS && end >= BLOCK && offset <= end - BLOCK; i++) {
        struct member member = {.offset = offset + BLOCK};
        uint8_t header[BLOCK];
        int result = gguf_source_read(search->source, offset, BLOCK, header);

        if (result < 0 || memcmp(header + MAGIC_AT, "ustar", 5) != 0)
            return result;
        size = read_size(header);
        if (header[TYPE_AT] == 'x') {
            pax_size = read_pax_size(search->source, member.offset, size, UINT64_MAX);
        } else if (!strchr("gLK", header[TYPE_AT]) || header[TYPE_AT] == '\0') {
            size = pax_size != UINT64_MAX ? pax_size : size;
            pax_size = UINT64_MAX;
        }
        /* An unfinished file ends with its data. */
        member.name =
            (struct gguf_string){(const char *)header, strnlen((const char *)header, NAME_BYTES)};
        member.size_bytes = MIN(size, end - member.offset);
        if (header[TYPE_AT] == '0' || header[TYPE_AT] == '\0')
            result = has_start_of_model(search->source, &member);
        if (result < 0)
            return result;
        if (result > 0)
            add_model(search, &member);
        if (size >= end - member.offset)
            break;
        offset = member.offset + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    return 0;
}

int gguf_locate_in_archive(const struct gguf_source *source, uint64_t *offset, uint64_t *size_bytes,
                           struct gguf_report *report)
{
    struct search search = {.source = source, .report = report};
    struct zip zip = {0};
    int result = open_zip(&search, &zip);
    const bool is_zip = result > 0;

    if (is_zip)
        result = search_zip(&zip, &search);
    else if (result == 0 && (result = search_tar(&search)) < 0)
        result =
            gguf_error(report, GGUF_RULE_READ, result, GGUF_NO_PLACE, "tar: %s", strerror(-result));
    if (result == 0 && search.n > 0)
        result = take_only(&search, is_zip ? "ZIP file" : "tar archive", offset, size_bytes);
    free(zip.bytes);
    return result;
}
