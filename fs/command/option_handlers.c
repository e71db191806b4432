#include "fs/command/option_handlers.h"

#include "fs/command/edit_file.h"
#include "fs/command/terminal.h"
#include "fs/mount/ready_descriptor.h"
#include "gguf/legacy/families.h"
#include "gguf/type_readings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static void *member_of(struct fs_options *options, const struct fs_option_use *use)
{
    return (char *)options + use->option->offset;
}

int fs_take_command(struct fs_options *options, const struct fs_option_use *use)
{
    const enum fs_command command = use->option->command;

    if (options->command == FS_HELP || options->command == FS_VERSION)
        return 0;
    if (options->command != FS_MOUNT && options->command != command && command != FS_HELP &&
        command != FS_VERSION) {
        fs_print_error("%s cannot be combined with %s", use->shown,
                       fs_command_name(options->command));
        return -EINVAL;
    }
    options->command = command;
    return 0;
}

int fs_take_flag(struct fs_options *options, const struct fs_option_use *use)
{
    *(bool *)member_of(options, use) = true;
    return 0;
}

/* ---- numbers ---- */

static int parse_number(const struct fs_option_use *use, int base, unsigned long least,
                        unsigned long most, unsigned *number)
{
    unsigned long value;
    char *end;

    errno = 0;
    value = strtoul(use->value, &end, base);
    if (errno == 0 && isdigit((unsigned char)*use->value) && *end == '\0' && value >= least &&
        value <= most) {
        *number = (unsigned)value;
        return 0;
    }
    if (base == 8)
        fs_print_error("option %s=%s: needs an octal number from %lo to %lo", use->shown,
                       use->value, least, most);
    else
        fs_print_error("option %s=%s: needs a number from %lu to %lu", use->shown, use->value,
                       least, most);
    return -EINVAL;
}

int fs_take_number(struct fs_options *options, const struct fs_option_use *use)
{
    return parse_number(use, 10, use->option->least, use->option->most, member_of(options, use));
}

int fs_take_umask(struct fs_options *options, const struct fs_option_use *use)
{
    return parse_number(use, 8, 0, 0777, &options->mount.umask);
}

int fs_take_era(struct fs_options *options, const struct fs_option_use *use)
{
    unsigned era = 0;
    const int result = parse_number(use, 10, 0, DEQUANT_ERA, &era);

    options->open.era = 1 + (int)era;
    return result;
}

/* The suffixes are powers of 1000, as in llama.cpp's gguf-split. */
int fs_take_size(struct fs_options *options, const struct fs_option_use *use)
{
    static const char suffixes[] = "KMG";
    uint64_t value, factor = 1;
    const char *suffix;
    uint64_t *size_bytes = member_of(options, use);
    char *end;

    errno = 0;
    value = strtoull(use->value, &end, 10);
    suffix = *end != '\0' ? strchr(suffixes, *end) : NULL;
    for (const char *i = suffixes; suffix && i <= suffix; i++)
        factor *= 1000;
    if (errno == 0 && isdigit((unsigned char)*use->value) && value >= use->option->least &&
        end[suffix != NULL] == '\0' && !__builtin_mul_overflow(value, factor, size_bytes))
        return 0;
    fs_print_error("option %s=%s: needs a size in bytes, like 500M or 2G", use->shown, use->value);
    return -EINVAL;
}

int fs_take_dtype(struct fs_options *options, const struct fs_option_use *use)
{
    static const struct {
        const char *name;
        enum fs_dtype dtype;
    } dtypes[] = {{"f32", FS_DTYPE_F32}, {"f16", FS_DTYPE_F16}, {"bf16", FS_DTYPE_BF16}};

    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        if (strcmp(use->value, dtypes[i].name) == 0) {
            options->dtype = dtypes[i].dtype;
            return 0;
        }
    }
    fs_print_error("option %s=%s: no such number type; available: f32, f16, bf16", use->shown,
                   use->value);
    return -EINVAL;
}

int fs_take_export(struct fs_options *options, const struct fs_option_use *use)
{
    char names[80] = "";

    if (fs_export_by_name(use->value, &options->export) == 0)
        return 0;
    for (enum fs_export_choice i = FS_EXPORT_STORED; i < FS_N_EXPORTS; i++) {
        const size_t length = strlen(names);

        snprintf(names + length, sizeof names - length, "%s%s", length > 0 ? ", " : "",
                 fs_export_name(i));
    }
    fs_print_error("option %s=%s: no such type; available: %s", use->shown, use->value, names);
    return -EINVAL;
}

/* ---- models ---- */

int fs_take_imatrix(struct fs_options *options, const struct fs_option_use *use)
{
    options->imatrix = use->value;
    return 0;
}

int fs_take_svg(struct fs_options *options, const struct fs_option_use *use)
{
    options->svg = use->value;
    return 0;
}

int fs_take_family(struct fs_options *options, const struct fs_option_use *use)
{
    const struct gguf_family *family;
    char names[200] = "";

    options->open.family = use->value;
    if (gguf_family_by_name(use->value))
        return 0;
    for (size_t i = 0; (family = gguf_family_at(i)); i++) {
        const size_t length = strlen(names);

        snprintf(names + length, sizeof names - length, " %s", family->name);
    }
    fs_print_error("option %s=%s: no such family; available:%s", use->shown, use->value, names);
    return -EINVAL;
}

int fs_take_type(struct fs_options *options, const struct fs_option_use *use)
{
    struct gguf_report report = {0};

    if (gguf_add_type_choice(&options->open, use->value, &report) == 0)
        return 0;
    fs_print_error("option %s=%s: %s", use->shown, use->value, report.first_error.message);
    return -EINVAL;
}

int fs_take_ik(struct fs_options *options, const struct fs_option_use *use)
{
    options->open.old_ik = strcmp(use->value, "old") == 0;
    if (options->open.old_ik)
        return 0;
    fs_print_error("option %s=%s: available: old", use->shown, use->value);
    return -EINVAL;
}

/* Print why an edit was refused, and the remedy if a comma may have cut the value. */
static int refuse_edit(const struct fs_option_use *use, const struct gguf_report *report)
{
    const bool is_cut = use->has_successor && use->option->name[0] != '-';

    fs_print_error("%s: %s%s", use->shown, report->first_error.message,
                   is_cut
                       ? " (a comma ends the value: write it as \\, or use --set, which needs no "
                         "escaping)"
                       : "");
    return report->first_error.code;
}

int fs_take_set(struct fs_options *options, const struct fs_option_use *use)
{
    const bool is_word = use->option->name[0] == '-';
    struct gguf_report report = {0};
    const int result = is_word ? fs_edit_set(use->value, &options->edits, &report)
                               : gguf_edits_set(&options->edits, use->value, &report);

    return result < 0 ? refuse_edit(use, &report) : 0;
}

int fs_take_unset(struct fs_options *options, const struct fs_option_use *use)
{
    struct gguf_report report = {0};

    if (gguf_edits_unset(&options->edits, use->value, &report) == 0)
        return 0;
    return refuse_edit(use, &report);
}

int fs_take_edits(struct fs_options *options, const struct fs_option_use *use)
{
    struct gguf_report report = {0};

    if (fs_edit_file_read(use->value, &options->edits, &report) == 0)
        return 0;
    return refuse_edit(use, &report);
}

/* ---- mounting ---- */

int fs_take_for_libfuse(struct fs_options *options, const struct fs_option_use *use)
{
    if (use->value && *use->value == '\0') {
        fs_print_error("option %s=: needs a value that is not empty", use->shown);
        return -EINVAL;
    }
    options->fuse_options[options->n_fuse_options++] = use->whole;
    return 0;
}

int fs_take_nothing(struct fs_options *options, const struct fs_option_use *use)
{
    (void)options;
    (void)use;
    return 0;
}

int fs_take_subdir(struct fs_options *options, const struct fs_option_use *use)
{
    if (*use->value == '\0') {
        fs_print_error("option %s=: needs the path of a directory; the root is /", use->shown);
        return -EINVAL;
    }
    options->mount.subdir = use->value;
    return 0;
}

int fs_take_notify_fd(struct fs_options *options, const struct fs_option_use *use)
{
    unsigned descriptor = 0;
    int result = parse_number(use, 10, 0, INT_MAX, &descriptor);

    (void)options;
    if (result < 0)
        return result;
    result = fs_ready_open((int)descriptor);
    if (result == 0)
        return 0;
    fs_print_error("option %s=%s: the descriptor is not open for writing: %s", use->shown,
                   use->value, strerror(-result));
    return -EINVAL;
}

int fs_take_debug(struct fs_options *options, const struct fs_option_use *use)
{
    options->mount.foreground = true;
    return fs_take_for_libfuse(options, use);
}

int fs_take_auto_unmount(struct fs_options *options, const struct fs_option_use *use)
{
    options->mount.auto_unmount = true;
    return fs_take_for_libfuse(options, use);
}

int fs_take_no_sandbox(struct fs_options *options, const struct fs_option_use *use)
{
    (void)use;
    options->mount.sandbox = false;
    return 0;
}

int fs_take_quiet(struct fs_options *options, const struct fs_option_use *use)
{
    (void)use;
    options->mount.log_level = FS_LOG_QUIET;
    return 0;
}

int fs_take_verbose(struct fs_options *options, const struct fs_option_use *use)
{
    (void)use;
    options->mount.log_level = FS_LOG_VERBOSE;
    return 0;
}

int fs_take_log(struct fs_options *options, const struct fs_option_use *use)
{
    static const struct {
        const char *name;
        enum fs_log_kind kind;
    } kinds[] = {{"stderr", FS_LOG_STDERR}, {"syslog", FS_LOG_SYSLOG}, {"journal", FS_LOG_JOURNAL}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(use->value, kinds[i].name) == 0) {
            options->mount.log = kinds[i].kind;
            return 0;
        }
    }
    if (!strchr(use->value, '/')) { /* more likely a misspelt word than a file */
        fs_print_error("option %s=%s: needs stderr, syslog, journal, or the path of a file with a "
                       "\"/\", like ./%s",
                       use->shown, use->value, use->value);
        return -EINVAL;
    }
    options->mount.log = FS_LOG_FILE;
    options->mount.log_file = use->value;
    return 0;
}

/* mount(8) passes rw unless it is given ro, and also reports a write-protected disk this way. */
int fs_take_rw(struct fs_options *options, const struct fs_option_use *use)
{
    (void)options;
    fs_print_error("warning: option %s: the tree cannot be written to; mounted read-only",
                   use->shown);
    return 0;
}

int fs_take_remount(struct fs_options *options, const struct fs_option_use *use)
{
    (void)options;
    fs_print_error(
        "option %s: ggufs cannot change an existing mount, whose tree is fixed; unmount it with "
        "\"fusermount3 -u MOUNTPOINT\" and mount it again; root can change flags of the kernel: "
        "mount -i -o remount,noexec MOUNTPOINT",
        use->shown);
    return -EINVAL;
}
