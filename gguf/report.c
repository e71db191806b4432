#include "gguf/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- places ---- */

struct gguf_place gguf_at(uint64_t file_offset)
{
    return (struct gguf_place){.thing = GGUF_WHOLE_FILE, .file_offset = file_offset};
}

struct gguf_place gguf_at_part(const char *name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_PART, {name, strlen(name)}, file_offset};
}

struct gguf_place gguf_at_key(struct gguf_string name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_A_KEY, name, file_offset};
}

struct gguf_place gguf_at_tensor(struct gguf_string name, uint64_t file_offset)
{
    return (struct gguf_place){GGUF_A_TENSOR, name, file_offset};
}

struct gguf_place gguf_moved(struct gguf_place place, uint64_t file_offset)
{
    place.file_offset = file_offset;
    return place;
}

/* ---- findings ---- */

/* Write what the message begins with. Returns its length. */
static size_t begin_message(const struct gguf_place *place, char *out, size_t room)
{
    int length = 0;

    switch (place->thing) {
    case GGUF_WHOLE_FILE:
        break;
    case GGUF_PART:
        length = snprintf(out, room, "%.200s: ", place->name.data);
        break;
    case GGUF_A_KEY:
        length = snprintf(out, room, "key %s: ", gguf_quote(place->name).text);
        break;
    case GGUF_A_TENSOR:
        length = snprintf(out, room, "tensor %s: ", gguf_quote(place->name).text);
        break;
    }
    return (size_t)length;
}

static void add(struct gguf_report *report, struct gguf_finding *finding, struct gguf_place place,
                const char *format, va_list args)
{
    const size_t begun = begin_message(&place, finding->message, sizeof finding->message);

    finding->thing = place.thing;
    finding->file_offset = place.file_offset;
    if (finding->severity != GGUF_ERROR &&
        (gguf_rule_text(finding->rule)->refused_by & report->loader)) {
        finding->severity = GGUF_ERROR;
        finding->code = -EINVAL;
    }
    vsnprintf(finding->message + begun, sizeof finding->message - begun, format, args);
    if (finding->severity == GGUF_ERROR && report->n_errors++ == 0)
        report->first_error = *finding;
    finding->path = report->path;
    if (place.thing == GGUF_A_KEY || place.thing == GGUF_A_TENSOR)
        finding->name = place.name;
    if (report->each)
        report->each(report->user, finding);
}

int gguf_error(struct gguf_report *report, enum gguf_rule rule, int code, struct gguf_place place,
               const char *format, ...)
{
    struct gguf_finding finding = {.severity = GGUF_ERROR, .rule = rule, .code = code};
    va_list args;

    va_start(args, format);
    add(report, &finding, place, format, args);
    va_end(args);
    return code;
}

int gguf_system_error(struct gguf_report *report, int code, struct gguf_place place)
{
    enum gguf_rule rule = GGUF_RULE_OPEN;

    if (code == -ENOMEM)
        rule = GGUF_RULE_MEMORY;
    else if (code == -EIO || code == -ESTALE)
        rule = GGUF_RULE_READ;
    return gguf_error(report, rule, code, place, "%s", strerror(-code));
}

void gguf_warning(struct gguf_report *report, enum gguf_rule rule, struct gguf_place place,
                  const char *format, ...)
{
    struct gguf_finding finding = {.severity = GGUF_WARNING, .rule = rule};
    va_list args;

    va_start(args, format);
    add(report, &finding, place, format, args);
    va_end(args);
}

void gguf_note(struct gguf_report *report, enum gguf_rule rule, struct gguf_place place,
               const char *format, ...)
{
    struct gguf_finding finding = {.severity = GGUF_NOTE, .rule = rule};
    va_list args;

    va_start(args, format);
    add(report, &finding, place, format, args);
    va_end(args);
}
