#include "fs/command/finding_output.h"

#include "fs/command/terminal.h"
#include "fs/tree/output/json.h"
#include "gguf/support/safe_print.h"

#include <inttypes.h>

static const char *const severities[] = {
    [GGUF_ERROR] = "error", [GGUF_WARNING] = "warning", [GGUF_NOTE] = "note"};

/* ---- text ---- */

static void print_place(FILE *stream, const char *path, const struct gguf_finding *finding)
{
    fputs(stream == stderr ? "ggufs: " : "", stream);
    gguf_print_safe_string(stream, finding->path ? finding->path : path);
    fputs(": ", stream);
}

void fs_print_finding(FILE *stream, const char *path, const struct gguf_finding *finding)
{
    print_place(stream, path, finding);
    if (finding->severity != GGUF_ERROR)
        fprintf(stream, "%s: ", severities[finding->severity]);
    if (finding->file_offset != GGUF_NO_OFFSET)
        fprintf(stream, "byte %" PRIu64 ": ", finding->file_offset);
    gguf_print_safe_string(stream, finding->message);
    fprintf(stream, " [%s]\n", gguf_rule_text(finding->rule)->name);
}

void fs_print_remedy(FILE *stream, const char *path, const struct gguf_finding *finding)
{
    const struct gguf_rule_text *text = gguf_rule_text(finding->rule);

    if (text->is_in_message)
        return;
    print_place(stream, path, finding);
    fprintf(stream, "help: %s: %s %s\n", text->name, text->explanation, text->remedy);
}

void fs_print_ok(const char *path, const char *text)
{
    gguf_print_safe_format(stdout, "%s: OK: %s", path, text);
    putchar('\n');
}

/* ---- JSON ---- */

/* A line of JSON. Strings are NULL where there is nothing. */
struct line {
    const char *path;
    const char *severity;
    const struct gguf_finding *finding;
    const char *text;
};

static void write_name(struct fs_sink *sink, const char *name, const struct gguf_finding *finding,
                       enum gguf_thing thing)
{
    fs_json_member(sink, name, false);
    if (finding && finding->thing == thing)
        fs_json_string(sink, finding->name);
    else
        fs_sink_literal(sink, "null");
}

static void write_line(const void *subject, struct fs_sink *sink)
{
    const struct line *line = subject;
    const struct gguf_finding *finding = line->finding;
    const struct gguf_rule_text *rule = finding ? gguf_rule_text(finding->rule) : NULL;

    fs_json_begin(sink, "file", line->path);
    fs_json_text_member(sink, "severity", line->severity);
    fs_json_text_member(sink, "rule", rule ? rule->name : NULL);
    fs_json_count_if(sink, "offset", finding && finding->file_offset != GGUF_NO_OFFSET,
                     finding ? finding->file_offset : 0);
    write_name(sink, "tensor", finding, GGUF_A_TENSOR);
    write_name(sink, "key", finding, GGUF_A_KEY);
    fs_json_text_member(sink, "text", line->text);
    fs_json_text_member(sink, "explanation", rule ? rule->explanation : NULL);
    fs_json_text_member(sink, "remedy", rule ? rule->remedy : NULL);
    fs_sink_literal(sink, "}\n");
}

void fs_print_finding_json(const char *path, const struct gguf_finding *finding)
{
    const struct line line = {finding->path ? finding->path : path, severities[finding->severity],
                              finding, finding->message};

    fs_print_written(write_line, &line);
}

void fs_print_ok_json(const char *path, const char *text)
{
    fs_print_written(write_line, &(struct line){.path = path, .severity = "ok", .text = text});
}
