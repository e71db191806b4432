#include "gguf/report.h"

#include <stdarg.h>
#include <stdio.h>

static void add(struct gguf_report *report, struct gguf_finding *finding)
{
    if (finding->severity == GGUF_ERROR && report->n_errors++ == 0)
        report->first_error = *finding;
    finding->path = report->path;
    if (report->each)
        report->each(report->user, finding);
}

int gguf_error(struct gguf_report *report, int code, uint64_t file_offset, const char *format, ...)
{
    struct gguf_finding finding = {
        .severity = GGUF_ERROR, .code = code, .file_offset = file_offset};
    va_list args;

    va_start(args, format);
    vsnprintf(finding.message, sizeof finding.message, format, args);
    va_end(args);
    add(report, &finding);
    return code;
}

void gguf_note(struct gguf_report *report, uint64_t file_offset, const char *format, ...)
{
    struct gguf_finding finding = {.severity = GGUF_NOTE, .file_offset = file_offset};
    va_list args;

    if (!report->each)
        return;
    va_start(args, format);
    vsnprintf(finding.message, sizeof finding.message, format, args);
    va_end(args);
    add(report, &finding);
}
