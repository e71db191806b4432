#include "gguf/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void add(struct gguf_report *report, const struct gguf_finding *finding)
{
    if (finding->severity == GGUF_ERROR && report->n_errors++ == 0)
        report->first_error = *finding;
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

    va_start(args, format);
    vsnprintf(finding.message, sizeof finding.message, format, args);
    va_end(args);
    add(report, &finding);
}

struct gguf_quoted gguf_quote(struct gguf_string string)
{
    struct gguf_quoted quoted;
    /* What must still fit behind a character: the closing quote, an ellipsis and the NUL. */
    const size_t limit = sizeof quoted.text - sizeof "\\xNN...\"";
    size_t used = 0;
    uint64_t i;

    quoted.text[used++] = '"';
    for (i = 0; i < string.length_bytes && used < limit; i++) {
        unsigned char c = (unsigned char)string.data[i];

        if (c < 0x20 || c > 0x7e || c == '"' || c == '\\')
            used += (size_t)sprintf(quoted.text + used, "\\x%02x", c);
        else
            quoted.text[used++] = (char)c;
    }
    snprintf(quoted.text + used, sizeof quoted.text - used, "%s\"",
             i < string.length_bytes ? "..." : "");
    return quoted;
}
