#include "gguf/parse_file.h"

#include "gguf/formats.h"
#include "gguf/locate.h"
#include "gguf/translate/translate.h"
#include "gguf/validate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/param.h>

static const struct gguf_format formats[] = {
    {"GGUF", gguf_probe_gguf, gguf_parse_gguf},
    {"rwkv.cpp", gguf_probe_rwkv, gguf_parse_rwkv}, /* has a magic of ggml */
    {"ggml", gguf_probe_ggml, gguf_parse_ggml},
};

const struct gguf_format *gguf_find_format(const struct gguf_start *start)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (formats[i].probe(start))
            return &formats[i];
    }
    return NULL;
}

/* ---- the place of the model in its file ---- */

/* Make bytes of the file its model. Nothing of its header may be in use yet. */
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

/* If the options give the place of the model, make it the range of the file's source. */
static int use_range(struct gguf_file *file, const struct gguf_open_options *options,
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

/* If data are missing and the options give a size, note that the size may be the reason. */
static void note_range(const struct gguf_open_options *options, struct gguf_report *report)
{
    const enum gguf_rule rule = report->first_error.rule;

    if (options->size_bytes > 0 && report->n_errors > 0 &&
        (rule == GGUF_RULE_TRUNCATED_METADATA || rule == GGUF_RULE_TRUNCATED_DATA))
        gguf_note(report, GGUF_RULE_RANGE, GGUF_NO_PLACE,
                  "-o size=%" PRIu64 " ends the model at byte %" PRIu64 "; it may be too small",
                  options->size_bytes, options->offset + options->size_bytes);
}

/* ---- a file ---- */

static int read_start(struct gguf_file *file, struct gguf_start *start, struct gguf_report *report)
{
    struct gguf_cursor cursor = gguf_cursor_begin(file, (struct gguf_encoding){0}, report);
    const uint64_t n_bytes = gguf_cursor_left(&cursor);

    *start = (struct gguf_start){.n_bytes = MIN(GGUF_START_BYTES, n_bytes),
                                 .file_bytes = n_bytes,
                                 .file_offset = file->source.start_offset,
                                 .path = file->source.path};
    if (start->n_bytes == 0)
        return 0;
    start->bytes = gguf_cursor_take(&cursor, start->n_bytes);
    cursor.place = gguf_at_part("header", 0);
    return start->bytes ? 0 : gguf_cursor_fail(&cursor, "its start");
}

/* Find the format. Unless the user says where the model is, it may be in an archive. */
static int find_format(struct gguf_file *file, const struct gguf_open_options *options,
                       const struct gguf_format **format, struct gguf_report *report)
{
    struct gguf_start start;
    uint64_t offset, size_bytes;
    int result = use_range(file, options, report);

    if (result == 0)
        result = read_start(file, &start, report);
    if (result < 0)
        return result;
    *format = gguf_find_format(&start);
    if (*format)
        return 0;
    if (file->source.start_offset == 0) {
        result = gguf_locate_in_archive(&file->source, &offset, &size_bytes, report);
        if (result > 0)
            result = set_range(file, offset, offset + size_bytes, report);
        if (result == 0 && file->source.start_offset > 0)
            result = read_start(file, &start, report);
        if (result < 0)
            return result;
        *format = gguf_find_format(&start);
    }
    return *format ? 0 : gguf_refuse_format(&start, report);
}

static int parse(struct gguf_model *model, const struct gguf_open_options *options,
                 struct gguf_report *report)
{
    const struct gguf_format *format;
    const int result = find_format(&model->files[0], options, &format, report);

    return result < 0 ? result : format->parse(model, options, report);
}

static int parse_after(const struct gguf_usage *before, struct gguf_file *file,
                       const struct gguf_open_options *options, struct gguf_model **model,
                       struct gguf_report *report)
{
    struct gguf_model *made = calloc(1, sizeof *made);
    int result;

    *model = NULL;
    if (made)
        made->files = calloc(1, sizeof *made->files);
    if (!made || !made->files) {
        gguf_close(made);
        gguf_file_close(file);
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    }
    made->alignment_bytes = GGUF_DEFAULT_ALIGNMENT;
    made->files[0] = *file;
    made->n_files = 1;
    made->before = *before;
    *file = (struct gguf_file){0};
    result = parse(made, options, report);
    if (result < 0)
        gguf_close(made);
    else
        *model = made;
    return result;
}

int gguf_parse_file(struct gguf_file *file, const struct gguf_open_options *options,
                    struct gguf_model **model, struct gguf_report *report)
{
    return parse_after(&(struct gguf_usage){0}, file, options, model, report);
}

static int parse_other_file(struct gguf_parsed_files *parsed, uint32_t index,
                            struct gguf_opened_file *opened,
                            const struct gguf_open_options *options, struct gguf_report *report)
{
    int result;

    if (opened->error == -ENOENT)
        return gguf_error(report, GGUF_RULE_SHARD_MISSING, -ENOENT, GGUF_NO_PLACE,
                          "is missing: the model has %" PRIu32 " %s, and this is number %" PRIu32,
                          parsed->count, parsed->what, index + 1);
    if (opened->error < 0)
        return gguf_error(report, opened->rule, opened->error, GGUF_NO_PLACE, "%s", opened->reason);
    opened->file.header.limit_bytes = GGUF_MAX_HEADER_BYTES - parsed->usage.header_bytes;
    opened->file.header.limit_hole_bytes = GGUF_MAX_HEADER_HOLE_BYTES - parsed->usage.hole_bytes;
    result = parse_after(&parsed->usage, &opened->file, options, &parsed->list[index], report);
    if (result < 0)
        return result;
    gguf_add_usage(&parsed->usage, parsed->list[index]);
    return parsed->check(parsed, index, report);
}

int gguf_parse_other_files(struct gguf_parsed_files *parsed, struct gguf_model *named,
                           struct gguf_files *files, const struct gguf_open_options *options,
                           struct gguf_report *report)
{
    unsigned n_bad = 0;
    int first = 0;

    parsed->list = calloc(parsed->count, sizeof *parsed->list);
    if (!parsed->list)
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    parsed->list[parsed->named] = named;
    gguf_add_usage(&parsed->usage, named);
    for (uint32_t i = 0; i < parsed->count && n_bad < GGUF_MAX_BAD_SHARDS; i++) {
        int result;

        if (i == parsed->named)
            continue;
        report->path = files->list[i].path;
        result = parse_other_file(parsed, i, &files->list[i], options, report);
        if (result < 0 && n_bad++ == 0)
            first = result;
    }
    report->path = NULL;
    return first;
}

void gguf_close_parsed(const struct gguf_parsed_files *parsed, uint32_t kept)
{
    for (uint32_t i = 0; parsed->list && i < parsed->count; i++)
        if (i != kept)
            gguf_close(parsed->list[i]);
    free(parsed->list);
}

/* ---- a model ---- */

static const struct gguf_open_options no_options;

int gguf_parse_files(struct gguf_files *files, const struct gguf_open_options *options,
                     struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_model *made;
    int result;

    *model = NULL;
    if (!options)
        options = &no_options;
    result = gguf_parse_file(&files->list[files->named].file, options, &made, report);
    if (result == 0)
        result = gguf_shards_join(&made, files, options, report);
    if (result == 0)
        result = gguf_parts_join(&made, files, options, report);
    if (result == 0)
        result = gguf_finish_model(made, options, report);
    if (result == 0)
        result = gguf_take_part(options->part, &made, report);
    if (result < 0) {
        note_range(options, report);
        gguf_close(made);
    } else {
        *model = made;
    }
    return result;
}

int gguf_open_with(const char *path, const struct gguf_open_options *options,
                   struct gguf_model **model, struct gguf_report *report)
{
    struct gguf_files files;
    int result = gguf_files_open(path, options ? options : &no_options, &files, report);

    *model = NULL;
    if (result < 0)
        return result;
    result = gguf_parse_files(&files, options, model, report);
    gguf_files_close(&files);
    return result;
}

int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report)
{
    return gguf_open_with(path, NULL, model, report);
}
