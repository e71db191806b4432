#include "fs/command/options.h"

#include "fs/command/edit_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum key {
    KEY_HELP,
    KEY_VERSION,
    KEY_CHECK,
    KEY_DATA,
    KEY_FOREGROUND,
    KEY_DEBUG,
    KEY_SINGLE_THREADED,
    KEY_UID,
    KEY_GID,
    KEY_UMASK,
    KEY_NO_SANDBOX,
    KEY_NONEMPTY,
    KEY_AUTO_UNMOUNT,
    KEY_CLONE_FD,
    KEY_PARTIAL,
    KEY_FAMILY,
    KEY_ERA,
    KEY_PREFETCH,
    KEY_MLOCK,
    KEY_DIRECT_IO,
    KEY_MAX_READ,
    KEY_MAX_THREADS,
    KEY_MAX_IDLE_THREADS,
    KEY_SET,
    KEY_UNSET,
    KEY_EDITS,
    KEY_SPLIT,
    KEY_PASS_ON, /* to libfuse */
};

struct option {
    enum key key;
    const char *name;     /* "-h", or what stands behind -o: "uid="; a space asks for a word more */
    const char *synonym;  /* "--help", or NULL */
    const char *argument; /* what stands behind the '=' */
    const char *help;
};

static const struct option options_table[] = {
    {KEY_HELP, "-h", "--help", "", "print this help and exit"},
    {KEY_VERSION, "-V", "--version", "", "print the versions of ggufs and libfuse and exit"},
    {KEY_CHECK, "--check", NULL, "", "mount nothing; print what is wrong with each MODEL"},
    {KEY_DATA, "--data", NULL, "", "with --check: read all tensor data as well"},
    {KEY_FOREGROUND, "-f", NULL, "", "stay in the foreground"},
    {KEY_DEBUG, "-d", NULL, "", "print every request; implies -f"},
    {KEY_SINGLE_THREADED, "-s", NULL, "", "serve with a single thread"},
    {KEY_EDITS, "--edits ", NULL, "FILE", "set and remove keys as a JSON file says"},
    {KEY_SET, "set=", NULL, "KEY=TYPE:VALUE", "set a key of the metadata"},
    {KEY_UNSET, "unset=", NULL, "KEY", "remove a key of the metadata"},
    {KEY_SPLIT, "split=", NULL, "SIZE", "show the model in files of up to SIZE, in split/"},
    {KEY_PASS_ON, "allow_other", NULL, "", "let all users read the tree"},
    {KEY_PASS_ON, "allow_root", NULL, "", "let you and root read the tree"},
    {KEY_AUTO_UNMOUNT, "auto_unmount", NULL, "", "unmount when the daemon dies"},
    {KEY_NONEMPTY, "nonempty", NULL, "", "mount over files that are in MOUNTPOINT"},
    {KEY_NO_SANDBOX, "nosandbox", NULL, "", "serve without the sandbox"},
    {KEY_PARTIAL, "partial", NULL, "", "take a MODEL that is still being downloaded"},
    {KEY_FAMILY, "family=", NULL, "NAME", "read an old ggml file as a model of this family"},
    {KEY_ERA, "era=", NULL, "N", "the blocks of an rwkv.cpp 100 file are of era N, 0 to 2"},
    {KEY_PREFETCH, "prefetch", NULL, "", "bring the model into memory in the background"},
    {KEY_MLOCK, "mlock", NULL, "", "the same, and lock it there"},
    {KEY_DIRECT_IO, "direct_io", NULL, "", "let the kernel keep nothing of what is read"},
    {KEY_MAX_THREADS, "threads=", NULL, "N", "serve with at most N threads"},
    {KEY_UID, "uid=", NULL, "N", "show user N as the owner of the files"},
    {KEY_GID, "gid=", NULL, "N", "show group N as the group of the files"},
    {KEY_UMASK, "umask=", NULL, "M", "permission bits to take away, octal"},
    {KEY_PASS_ON, "fsname=", NULL, "NAME", "what mount(8) and df(1) show as the source"},
    {KEY_PASS_ON, "subtype=", NULL, "NAME", "the file system type behind \"fuse.\""},
    {KEY_CLONE_FD, "clone_fd", NULL, "",
     "a /dev/fuse descriptor for every thread; needs nosandbox"},
    {KEY_MAX_READ, "max_read=", NULL, "N", "largest read request, in bytes"},
    {KEY_MAX_THREADS, "max_threads=", NULL, "N", "the same as threads=N"},
    {KEY_MAX_IDLE_THREADS, "max_idle_threads=", NULL, "N", "keep at most N idle threads"},
};

/* What is more comes in parts, which several threads answer at the same time. */
#define MAX_READ (512u << 10)

#define N_OPTIONS (sizeof options_table / sizeof *options_table)

/* Reads the number behind the '=' of `argument`. Returns what fuse_opt_proc_t does: 0 or -1. */
static int parse_number(const char *argument, int base, unsigned long limit, unsigned *number)
{
    const char *digits = strchr(argument, '=') + 1;
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(digits, &end, base);
    if (errno != 0 || !isdigit((unsigned char)*digits) || *end != '\0' || value > limit) {
        fprintf(stderr,
                base == 8 ? "ggufs: option %s: needs an octal number from 0 to %lo\n"
                          : "ggufs: option %s: needs a number from 0 to %lu\n",
                argument, limit);
        return -1;
    }
    *number = (unsigned)value;
    return 0;
}

/* Of an option that there is not, perhaps with what was meant. */
static void complain_of(const char *argument)
{
    const char *name = argument + strspn(argument, "-");

    fprintf(stderr, "ggufs: unknown option %s", argument);
    if (strcmp(argument, "-u") == 0 || strcmp(argument, "--unmount") == 0)
        fprintf(stderr, "; fusermount3 -u MOUNTPOINT unmounts");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const char *known = options_table[i].name;

        if (strncmp(name, known, strlen(known)) == 0)
            fprintf(stderr, "; do you mean -o %s?", name);
    }
    fputc('\n', stderr);
}

/* Bytes, or thousands, millions or thousands of millions of them, as gguf-split has it. */
static int parse_size(const char *argument, uint64_t *size_bytes)
{
    static const char units[] = "KMG";
    const char *digits = strchr(argument, '=') + 1;
    uint64_t value, factor = 1;
    const char *unit;
    char *end;

    errno = 0;
    value = strtoull(digits, &end, 10);
    unit = *end != '\0' ? strchr(units, *end) : NULL;
    for (const char *i = units; unit && i <= unit; i++)
        factor *= 1000;
    if (errno != 0 || !isdigit((unsigned char)*digits) || value == 0 || end[unit != NULL] != '\0' ||
        __builtin_mul_overflow(value, factor, size_bytes)) {
        fprintf(stderr, "ggufs: option %s: needs a size like 500M or 2G\n", argument);
        return -1;
    }
    return 0;
}

static int add_edit(struct gguf_edits *edits, int key, const char *argument)
{
    struct gguf_report report = {0};
    const char *text = argument;
    int result;

    if (key == KEY_EDITS) {
        text += strlen("--edits");
        result = fs_edit_file_read(text + (*text == '='), edits, &report);
    } else {
        text = strchr(argument, '=') + 1;
        result = key == KEY_SET ? gguf_edits_set(edits, text, &report)
                                : gguf_edits_unset(edits, text, &report);
    }
    if (result == 0)
        return 0;
    fprintf(stderr, "ggufs: %s: %s\n",
            key == KEY_EDITS ? "--edits"
            : key == KEY_SET ? "-o set"
                             : "-o unset",
            report.first_error.message);
    return -1;
}

static int add_path(struct fs_options *options, const char *path)
{
    options->paths[options->n_paths++] = path;
    return 0;
}

/* libfuse frees the argument. */
static int set_family(struct fs_options *options, const char *name)
{
    free(options->family);
    options->family = strdup(name);
    options->open.family = options->family;
    if (options->family)
        return 0;
    fprintf(stderr, "ggufs: %s\n", strerror(ENOMEM));
    errno = ENOMEM;
    return -1;
}

/* What fuse_opt_proc_t wants: -1 error, 0 drop the argument, 1 leave it for libfuse. */
static int on_option(void *data, const char *argument, int key, struct fuse_args *rest)
{
    struct fs_options *options = data;
    const unsigned long any_id = UINT32_MAX - 1;
    unsigned era;

    (void)rest;
    switch (key) {
    case FUSE_OPT_KEY_NONOPT:
        return add_path(options, argument);
    case FUSE_OPT_KEY_OPT:
        if (argument[0] != '-')
            return 1;
        complain_of(argument);
        return -1;
    case KEY_HELP:
        options->command = FS_HELP;
        return 0;
    case KEY_VERSION:
        options->command = FS_VERSION;
        return 0;
    case KEY_CHECK:
        options->command = FS_CHECK;
        return 0;
    case KEY_DATA:
        options->data = true;
        return 0;
    case KEY_FOREGROUND:
        options->mount.foreground = true;
        return 0;
    case KEY_DEBUG:
        options->mount.foreground = true;
        return 1;
    case KEY_SINGLE_THREADED:
        options->mount.single_threaded = true;
        return 0;
    case KEY_NO_SANDBOX:
        options->mount.sandbox = false;
        return 0;
    case KEY_NONEMPTY:
        options->mount.nonempty = true;
        return 0;
    case KEY_AUTO_UNMOUNT:
        options->mount.auto_unmount = true;
        return 1;
    case KEY_CLONE_FD:
        options->mount.clone_fd = true;
        return 0;
    case KEY_PARTIAL:
        options->open.partial = true;
        options->mount.keep_cache = false;
        return 0;
    case KEY_FAMILY:
        return set_family(options, strchr(argument, '=') + 1);
    case KEY_ERA:
        if (parse_number(argument, 10, DEQUANT_ERA, &era) < 0)
            return -1;
        options->open.era = 1 + (int)era;
        return 0;
    case KEY_PREFETCH:
        options->mount.prefetch = true;
        return 0;
    case KEY_MLOCK:
        options->mount.mlock = true;
        return 0;
    case KEY_DIRECT_IO:
        options->mount.direct_io = true;
        options->mount.keep_cache = false;
        return 0;
    case KEY_UID:
        return parse_number(argument, 10, any_id, &options->mount.uid);
    case KEY_GID:
        return parse_number(argument, 10, any_id, &options->mount.gid);
    case KEY_UMASK:
        return parse_number(argument, 8, 0777, &options->mount.umask);
    case KEY_SET:
    case KEY_UNSET:
    case KEY_EDITS:
        return add_edit(&options->edits, key, argument);
    case KEY_SPLIT:
        return parse_size(argument, &options->split_bytes);
    case KEY_MAX_READ:
        return parse_number(argument, 10, UINT32_MAX, &options->mount.max_read);
    case KEY_MAX_THREADS:
        return parse_number(argument, 10, 100000, &options->mount.max_threads);
    case KEY_MAX_IDLE_THREADS:
        return parse_number(argument, 10, 100000, &options->mount.max_idle_threads);
    default:
        return 1;
    }
}

/* What FUSE_OPT_KEY() makes, without its implicit conversions. */
static struct fuse_opt template_of(const char *name, enum key key)
{
    return (struct fuse_opt){.templ = name, .offset = (unsigned long)-1U, .value = (int)key};
}

/* The table as libfuse's parser wants it. */
static void make_templates(struct fuse_opt templates[2 * N_OPTIONS + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options_table[i];

        templates[n++] = template_of(option->name, option->key);
        if (option->synonym)
            templates[n++] = template_of(option->synonym, option->key);
    }
    templates[n] = (struct fuse_opt){0};
}

static int check_paths(const struct fs_options *options)
{
    if (options->data && options->command == FS_MOUNT) {
        fprintf(stderr, "ggufs: --data goes with --check\n");
        return -EINVAL;
    }
    if (options->mount.clone_fd && options->mount.sandbox) {
        fprintf(stderr, "ggufs: -o clone_fd goes with -o nosandbox: threads open /dev/fuse\n");
        return -EINVAL;
    }
    if ((options->edits.count > 0 || options->split_bytes > 0) && options->command == FS_CHECK) {
        fprintf(stderr, "ggufs: --check takes no edits and splits nothing\n");
        return -EINVAL;
    }
    if (options->command == FS_CHECK) {
        if (options->n_paths > 0)
            return 0;
        fprintf(stderr, "ggufs: --check needs a MODEL\n");
    } else if (options->command != FS_MOUNT || options->n_paths == 2) {
        return 0;
    } else if (options->n_paths == 0) {
        fprintf(stderr, "ggufs: MODEL and MOUNTPOINT are missing\n");
    } else if (options->n_paths == 1) {
        fprintf(stderr, "ggufs: MOUNTPOINT is missing\n");
    } else {
        fprintf(stderr, "ggufs: one argument too many: %s\n", options->paths[2]);
    }
    return -EINVAL;
}

int fs_options_parse(int argc, char **argv, struct fs_options *options)
{
    struct fuse_opt templates[2 * N_OPTIONS + 1];

    *options = (struct fs_options){.mount = {.sandbox = true,
                                             .keep_cache = true,
                                             .max_read = MAX_READ,
                                             .uid = getuid(),
                                             .gid = getgid(),
                                             .fuse = FUSE_ARGS_INIT(argc, argv)}};
    options->paths = calloc((size_t)argc + 1, sizeof *options->paths);
    if (!options->paths) {
        fprintf(stderr, "ggufs: %s\n", strerror(ENOMEM));
        return -ENOMEM;
    }
    make_templates(templates);
    errno = 0;
    if (fuse_opt_parse(&options->mount.fuse, options, templates, on_option) < 0)
        return errno == ENOMEM ? -ENOMEM : -EINVAL; /* libfuse has told of either */
    return check_paths(options);
}

void fs_options_free(struct fs_options *options)
{
    fuse_opt_free_args(&options->mount.fuse);
    gguf_edits_free(&options->edits);
    free(options->paths);
    free(options->family);
}

void fs_options_print_usage(FILE *stream)
{
    fprintf(stream, "usage: ggufs [options] MODEL MOUNTPOINT\n"
                    "       ggufs --check [--data] MODEL...\n");
}

void fs_options_print_help(FILE *stream)
{
    fs_options_print_usage(stream);
    fprintf(stream, "\nMounts a GGUF model as a directory tree. Unmount it with: "
                    "fusermount3 -u MOUNTPOINT\n\noptions:\n");
    for (size_t i = 0; i < N_OPTIONS; i++) {
        const struct option *option = &options_table[i];
        char left[64];

        snprintf(left, sizeof left, "%s%s%s%s%s", option->name[0] == '-' ? "" : "-o ", option->name,
                 option->argument, option->synonym ? ", " : "",
                 option->synonym ? option->synonym : "");
        fprintf(stream, "  %-24s %s\n", left, option->help);
    }
    fprintf(stream, "\nSeveral -o options can stand behind one -o, with commas. Other ones go to "
                    "libfuse.\nggufs(1) has more, also on exit statuses.\n");
}
