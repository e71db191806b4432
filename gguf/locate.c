#include "gguf/locate.h"

#include "gguf/zip.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

/* Models in a ZIP file that are listed, if it has several. */
#define MAX_LISTED 16

static int set_range(struct gguf_file *file, uint64_t start_offset, uint64_t end_offset,
                     struct gguf_report *report)
{
    const struct gguf_header limits = {.limit_bytes = file->header.limit_bytes,
                                       .limit_hole_bytes = file->header.limit_hole_bytes};

    gguf_header_free(&file->header);
    file->header = limits;
    file->source.start_offset = start_offset;
    file->source.end_offset = end_offset;
    if (gguf_header_leave_out(&file->header, 0, start_offset) < 0)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    return 0;
}

int gguf_locate_range(struct gguf_file *file, const struct gguf_open_options *options,
                      struct gguf_report *report)
{
    const struct gguf_source *source = &file->source;
    const uint64_t offset = options->offset, size_bytes = options->size_bytes;
    uint64_t end = source->end_offset;

    if (offset == 0 && size_bytes == 0)
        return 0;
    if (offset >= source->size_bytes)
        return gguf_error(report, GGUF_RULE_RANGE, -EINVAL, GGUF_NO_PLACE,
                          "-o offset=%" PRIu64 ": the file ends at byte %" PRIu64, offset,
                          source->size_bytes);
    if (size_bytes > 0 &&
        (__builtin_add_overflow(offset, size_bytes, &end) || end > source->end_offset))
        return gguf_error(report, GGUF_RULE_RANGE, -EINVAL, GGUF_NO_PLACE,
                          "-o size=%" PRIu64 ": only %" PRIu64 " bytes are left from byte %" PRIu64
                          " to the end of the file",
                          size_bytes, source->size_bytes - offset, offset);
    return set_range(file, offset, end, report);
}

void gguf_note_range(const struct gguf_open_options *options, struct gguf_report *report)
{
    const enum gguf_rule rule = report->first_error.rule;

    if (options->size_bytes > 0 && report->n_errors > 0 &&
        (rule == GGUF_RULE_TRUNCATED_METADATA || rule == GGUF_RULE_TRUNCATED_DATA))
        gguf_note(report, GGUF_RULE_RANGE, GGUF_NO_PLACE,
                  "-o size=%" PRIu64 " ends the model at byte %" PRIu64 "; it may be too small",
                  options->size_bytes, options->offset + options->size_bytes);
}

/* ---- models in archives ---- */

/* A member that may be a model. */
struct candidate {
    struct gguf_zip_member member; /* of a tar archive, too */
    uint64_t offset;               /* of its data, if it is stored */
};

/* Models that were found in an archive. */
struct search {
    const struct gguf_source *source;
    struct gguf_report *report;
    struct candidate first;
    struct gguf_quoted name; /* of the first */
    uint64_t n;
};

/* Returns 1, 0 if the member's bytes are not the start of a model, or a negative errno. */
static int has_start_of_model(const struct gguf_source *source, const struct candidate *candidate)
{
    uint8_t bytes[GGUF_START_BYTES];
    struct gguf_start start = {.bytes = bytes,
                               .n_bytes = MIN(sizeof bytes, candidate->member.size_bytes),
                               .file_bytes = candidate->member.size_bytes};
    int result;

    if (start.n_bytes == 0)
        return 0;
    result = gguf_source_read(source, candidate->offset, start.n_bytes, bytes);
    return result < 0 ? result : gguf_find_format(&start) != NULL;
}

/* Packed data cannot be recognized, so the name decides. Returns as has_start_of_model(). */
static int is_model(const struct search *search, struct candidate *candidate)
{
    const struct gguf_zip_member *member = &candidate->member;
    int result;

    if (member->packing != GGUF_ZIP_STORED)
        return member->name.length_bytes > strlen(".gguf") &&
               gguf_string_ends_with(member->name, ".gguf");
    if (member->size_bytes == 0)
        return 0;
    result = gguf_zip_find_data(search->source, member, &candidate->offset, search->report);
    if (result < 0)
        return result;
    result = has_start_of_model(search->source, candidate);
    if (result < 0)
        gguf_error(search->report, GGUF_RULE_READ, result, gguf_at(candidate->offset),
                   "ZIP member %s: %s", gguf_quote(member->name).text, strerror(-result));
    return result;
}

static const char *adjective_of(const struct candidate *candidate)
{
    return candidate->member.packing == GGUF_ZIP_ENCRYPTED ? "encrypted" : "compressed";
}

static void note_model(const struct search *search, const struct candidate *candidate,
                       const char *name)
{
    if (candidate->member.packing == GGUF_ZIP_STORED)
        gguf_note(search->report, GGUF_RULE_SEVERAL_MODELS, GGUF_NO_PLACE,
                  "%s: -o offset=%" PRIu64 ",size=%" PRIu64, name, candidate->offset,
                  candidate->member.size_bytes);
    else
        gguf_note(search->report, GGUF_RULE_SEVERAL_MODELS, GGUF_NO_PLACE,
                  "%s: %s, so it must be unpacked first (unzip)", name, adjective_of(candidate));
}

/* Add a model. If there are several, notes list them. */
static void add_model(struct search *search, const struct candidate *candidate)
{
    const struct gguf_quoted name = gguf_quote(candidate->member.name);

    if (search->n == 0) {
        search->first = *candidate;
        search->name = name;
    } else if (search->n < MAX_LISTED) {
        if (search->n == 1)
            note_model(search, &search->first, search->name.text);
        note_model(search, candidate, name.text);
    }
    search->n++;
}

/* Make the only model that was found the range of the file. Returns 1 or a negative errno. */
static int take_only(struct gguf_file *file, const struct search *search, const char *archive)
{
    const struct candidate *only = &search->first;
    int result;

    if (search->n > 1)
        return gguf_error(search->report, GGUF_RULE_SEVERAL_MODELS, -EINVAL, GGUF_NO_PLACE,
                          "holds %" PRIu64 " models in a %s; choose one with -o "
                          "offset=BYTES,size=BYTES",
                          search->n, archive);
    if (only->member.packing != GGUF_ZIP_STORED)
        return gguf_error(search->report, GGUF_RULE_PACKED, -EINVAL,
                          gguf_at(only->member.entry_offset),
                          "ZIP member %s is %s, so it cannot be read in place; unpack it first "
                          "(unzip)",
                          search->name.text, adjective_of(only));
    result = set_range(file, only->offset, only->offset + only->member.size_bytes, search->report);
    return result < 0 ? result : 1;
}

/* Find the models in a ZIP file, and refuse one without. Returns 0 or a negative errno. */
static int search_zip(struct gguf_zip *zip, struct search *search)
{
    struct candidate candidate;
    struct gguf_string first_name = {0};
    bool is_checkpoint = false; /* a member has the name that torch.save() gives */
    int result;

    while ((result = gguf_zip_next(zip, &candidate.member, search->report)) > 0) {
        if (!first_name.data)
            first_name = candidate.member.name;
        is_checkpoint |= gguf_string_ends_with(candidate.member.name, "data.pkl");
        result = is_model(search, &candidate);
        if (result < 0)
            return result;
        if (result > 0)
            add_model(search, &candidate);
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

int gguf_locate_in_zip(struct gguf_file *file, struct gguf_report *report)
{
    struct search search = {.source = &file->source, .report = report};
    struct gguf_zip zip;
    int result = gguf_zip_open(&file->source, &zip, report);

    if (result > 0)
        result = search_zip(&zip, &search);
    if (result == 0 && search.n > 0)
        result = take_only(file, &search, "ZIP file");
    gguf_zip_close(&zip);
    return result;
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
        struct candidate candidate = {.offset = offset + BLOCK};
        uint8_t header[BLOCK];
        int result = gguf_source_read(search->source, offset, BLOCK, header);

        if (result < 0 || memcmp(header + MAGIC_AT, "ustar", 5) != 0)
            return result;
        size = read_size(header);
        if (header[TYPE_AT] == 'x') {
            pax_size = read_pax_size(search->source, candidate.offset, size, UINT64_MAX);
        } else if (!strchr("gLK", header[TYPE_AT]) || header[TYPE_AT] == '\0') {
            size = pax_size != UINT64_MAX ? pax_size : size;
            pax_size = UINT64_MAX;
        }
        /* An unfinished file ends with its data. */
        candidate.member = (struct gguf_zip_member){
            .name = {(const char *)header, strnlen((const char *)header, NAME_BYTES)},
            .size_bytes = MIN(size, end - candidate.offset)};
        if (header[TYPE_AT] == '0' || header[TYPE_AT] == '\0')
            result = has_start_of_model(search->source, &candidate);
        if (result < 0)
            return result;
        if (result > 0)
            add_model(search, &candidate);
        if (size >= end - candidate.offset)
            break;
        offset = candidate.offset + (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    return 0;
}

int gguf_locate_in_tar(struct gguf_file *file, struct gguf_report *report)
{
    struct search search = {.source = &file->source, .report = report};
    const int result = search_tar(&search);

    if (result < 0)
        return gguf_error(report, GGUF_RULE_READ, result, GGUF_NO_PLACE, "tar: %s",
                          strerror(-result));
    return search.n > 0 ? take_only(file, &search, "tar archive") : 0;
}
