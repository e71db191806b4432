#include "gguf/report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int gguf_add_finding(struct gguf_report *report, enum gguf_severity severity, enum gguf_rule rule,
                     int code, struct gguf_place place, const char *format, ...)
{
    static const char *const things[] = {"", "", "key ", "tensor "};
    const bool is_named = place.thing == GGUF_A_KEY || place.thing == GGUF_A_TENSOR;
    const bool is_refused =
        severity != GGUF_ERROR && (gguf_rule_text(rule)->refused_by & report->loader);
    struct gguf_finding finding = {.severity = is_refused ? GGUF_ERROR : severity,
                                   .rule = rule,
                                   .thing = place.thing,
                                   .code = is_refused ? -EINVAL : code,
                                   .file_offset = place.file_offset};
    va_list args;
    size_t begun = 0;

    if (place.thing != GGUF_WHOLE_FILE)
        begun = (size_t)snprintf(finding.message, sizeof finding.message,
                                 "%s%.200s: ", things[place.thing],
                                 is_named ? gguf_quote(place.name).text : place.name.data);
    va_start(args, format);
    vsnprintf(finding.message + begun, sizeof finding.message - begun, format, args);
    va_end(args);
    if (finding.severity == GGUF_ERROR && report->n_errors++ == 0)
        report->first_error = finding;
    finding.path = report->path;
    if (is_named)
        finding.name = place.name;
    if (report->each)
        report->each(report->user, &finding);
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
