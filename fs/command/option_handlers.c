#include "fs/command/option_handlers.h"

#include "fs/command/edit_file.h"
#include "fs/command/options.h"
#include "fs/command/terminal.h"
#include "fs/mount/events.h"
#include "gguf/ambiguous_types.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- models ---- */

int fs_take_type(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    struct gguf_report report = {0};

    if (gguf_add_type_choice(&options->open, use->value, &report) == 0)
        return 0;
    fs_print_error("option %s=%s: %s", use->shown, use->value, report.first_error.message);
    return -EINVAL;
}

/* Print why an edit was refused, and the remedy if a comma may have cut the value. */
static int refuse_edit(const struct gguf_option_use *use, const struct gguf_report *report)
{
    const bool is_cut = use->has_successor && use->option->names[0] != '-';

    fs_print_error("%s: %s%s", use->shown, report->first_error.message,
                   is_cut
                       ? " (a comma ends the value: write it as \\, or use --set, which needs no "
                         "escaping)"
                       : "");
    return report->first_error.code;
}

int fs_take_set(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    const bool is_word = use->option->names[0] == '-';
    struct gguf_report report = {0};
    const int result = is_word ? fs_edit_set(use->value, &options->edits, &report)
                               : gguf_edits_set(&options->edits, use->value, &report);

    return result < 0 ? refuse_edit(use, &report) : 0;
}

int fs_take_unset(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    struct gguf_report report = {0};

    if (gguf_edits_unset(&options->edits, use->value, &report) == 0)
        return 0;
    return refuse_edit(use, &report);
}

int fs_take_edits(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;
    struct gguf_report report = {0};

    if (fs_edit_file_read(use->value, &options->edits, &report) == 0)
        return 0;
    return refuse_edit(use, &report);
}

int fs_take_template_argument(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    if (!strchr(use->value, '=') || use->value[0] == '=') {
        fs_print_error("option %s %s: needs KEY=JSON, as in enable_thinking=false", use->shown,
                       use->value);
        return -EINVAL;
    }
    return gguf_texts_add(&options->template_arguments, use->value);
}

/* ---- mounting ---- */

int fs_take_for_libfuse(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    if (use->value && *use->value == '\0') {
        fs_print_error("option %s=: needs a value that is not empty", use->shown);
        return -EINVAL;
    }
    return gguf_texts_add(&options->mount.fuse, use->whole);
}

int fs_take_subdir(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    if (*use->value == '\0') {
        fs_print_error("option %s=: needs the path of a directory; the root is /", use->shown);
        return -EINVAL;
    }
    options->mount.subdir = use->value;
    return 0;
}

int fs_take_notify_fd(void *target, const struct gguf_option_use *use)
{
    char *end;
    const unsigned long descriptor = strtoul(use->value, &end, 10);
    const bool is_number = *use->value >= '0' && *use->value <= '9' && *end == '\0';
    const int result =
        is_number && descriptor <= INT_MAX ? fs_events_set_descriptor((int)descriptor) : -EBADF;

    (void)target;
    if (result == 0)
        return 0;
    fs_print_error("option %s=%s: the descriptor is not open for writing: %s", use->shown,
                   use->value, strerror(-result));
    return -EINVAL;
}

int fs_take_debug(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    options->mount.foreground = true;
    return fs_take_for_libfuse(target, use);
}

int fs_take_auto_unmount(void *target, const struct gguf_option_use *use)
{
    struct fs_options *options = target;

    options->mount.auto_unmount = true;
    return fs_take_for_libfuse(target, use);
}

/* mount(8) passes rw unless it is given ro, and also reports a write-protected disk this way. */
int fs_take_rw(void *target, const struct gguf_option_use *use)
{
    (void)target;
    fs_print_error("warning: option %s: the tree cannot be written to; mounted read-only",
                   use->shown);
    return 0;
}

int fs_take_remount(void *target, const struct gguf_option_use *use)
{
    (void)target;
    fs_print_error(
        "option %s: ggufs cannot change an existing mount, whose tree is fixed; unmount it with "
        "\"fusermount3 -u MOUNTPOINT\" and mount it again; root can change flags of the kernel: "
        "mount -i -o remount,noexec MOUNTPOINT",
        use->shown);
    return -EINVAL;
}
