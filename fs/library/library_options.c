#include "fs/library/library.h"

#include "gguf/ambiguous_types.h"
#include "gguf/legacy/families.h"
#include "gguf/support/option_parser.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SET(kind, member) GGUF_OPTION_##kind, .offset = offsetof(struct fs_library_options, member)

/* Where the parser's message goes during a call: it passes none on. */
static _Thread_local struct gguf_report *heard __attribute__((tls_model("initial-exec")));

static void hear(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void hear(const char *format, ...)
{
    char text[700];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    gguf_error(heard, FS_NO_RULE, -EINVAL, GGUF_NO_PLACE, "%s", text);
}

static int take_type(void *target, const struct gguf_option_use *use)
{
    struct fs_library_options *options = target;
    struct gguf_report report = {0};
    const int result = gguf_add_type_choice(&options->open, use->value, &report);

    if (result < 0)
        hear("option %s=%s: %s", use->shown, use->value, report.first_error.message);
    return result;
}

static const struct gguf_choice dtypes[] = {
    {"f32", FS_DTYPE_F32}, {"f16", FS_DTYPE_F16}, {"bf16", FS_DTYPE_BF16}, {0}};
static const struct gguf_choice eras[] = {{"0", 1}, {"1", 2}, {"2", 3}, {0}};
static const struct gguf_choice parts[] = {
    {"model", GGUF_TEXT_PART}, {"mmproj", GGUF_PROJECTOR_PART}, {0}};
static const struct gguf_choice ik_types[] = {{"old", 1}, {0}};

/* Words of ggufs(1) with the meaning that they have there, apart from `mapped`. */
/* clang-format off */
static const struct gguf_option rows[] = {
    {"mapped", NULL, "", SET(ON, mapped)},
    {"partial", NULL, "", SET(ON, open.partial)},
    {"offset", "BYTES", "", SET(BYTES, open.offset)},
    {"size", "BYTES", "", SET(BYTES, open.size_bytes), .least = 1},
    {"family", "NAME", "", SET(TEXT, open.family), .choice_at = gguf_family_name_at},
    {"era", "N", "", SET(CHOICE, open.era), .choices = eras},
    {"type", "ID:NAME", "", GGUF_OPTION_HANDLER, .handle = take_type},
    {"ik", "old", "", SET(ON, open.old_ik), .choices = ik_types},
    {"part", "PART", "", SET(CHOICE, open.part), .choices = parts},
    {"export", "TYPE", "", SET(CHOICE, tree.export), .least = FS_EXPORT_STORED,
     .choice_at = fs_export_choice_at},
    {"dtype", "TYPE", "", SET(CHOICE, tree.dtype), .choices = dtypes},
    {"split", "SIZE", "", SET(BYTES, tree.split.limit_bytes), .least = 1},
    {"hf_shard", "SIZE", "", SET(BYTES, tree.hf_shard_bytes), .least = 1},
    {"-o", "OPTION,...", "", GGUF_OPTION_GROUP, .commands = 0},
};
/* clang-format on */

static const struct gguf_option_table table = {
    .program = "ggufs",
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
    .no_command = "opening",
    .command_offset = offsetof(struct fs_library_options, command),
    .print_error = hear,
};

int fs_library_options_parse(const char *text, struct fs_library_options *options, char **words,
                             struct gguf_report *report)
{
    char *argv[] = {(char[]){"ggufs"}, (char[]){"-o"}, (char *)(uintptr_t)(text ? text : ""), NULL};
    struct gguf_command_line line;
    int result;

    heard = report;
    result = gguf_options_parse(&table, 3, argv, options, &line);
    if (result == 0 && options->mapped && !fs_library_catches_faults()) {
        hear("option mapped: call ggufs_catch_faults() first");
        result = -EINVAL;
    }
    heard = NULL;
    *words = line.n_owned > 0 ? line.owned[--line.n_owned] : NULL;
    gguf_command_line_free(&line);
    return result;
}
