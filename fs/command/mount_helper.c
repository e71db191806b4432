#include "fs/command/mount_helper.h"

#include "fs/command/command_line.h"
#include "fs/command/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* mount(8), EXIT STATUS */
enum { WRONG_CALL = 1, SYSTEM_ERROR = 2, MOUNT_FAILURE = 32 };

#define LOOP_DEVICE "/dev/loop"

bool fs_is_mount_helper(const char *program)
{
    const char *slash = program ? strrchr(program, '/') : NULL;
    const char *name = slash ? slash + 1 : program;

    return name && strcmp(name, "mount.ggufs") == 0;
}

static int refuse(void)
{
    fputs("usage: mount.ggufs MODEL MOUNTPOINT [-fnsv] [-o OPTIONS]\n", stderr);
    return -EINVAL;
}

/* Translate mount's options to words of ggufs. Returns their number, or -EINVAL. */
static int translate(int argc, char **argv, char **words, bool *is_trial)
{
    int n = 0;
    int option;

    unsetenv("POSIXLY_CORRECT"); /* with it, getopt() would end at the first path */
    words[n++] = "ggufs";
    words[n++] = "-o";
    words[n++] = "";
    while ((option = getopt(argc, argv, "fnsvN:o:t:")) != -1) {
        switch (option) {
        case 'f':
            *is_trial = true;
            break;
        case 's':
            words[2] = "sloppy"; /* it applies to what follows */
            break;
        case 'o':
            words[n++] = "-o";
            words[n++] = optarg;
            break;
        case 'n': /* no /etc/mtab to write */
        case 'v': /* mount prints what it mounted */
        case 't': /* ggufs recognizes the format */
            break;
        case 'N':
            fs_print_error("option -N: ggufs cannot mount in another mount namespace; enter it "
                           "first: nsenter --mount=%s mount -t ggufs MODEL MOUNTPOINT",
                           optarg);
            return -EINVAL;
        default: /* getopt() has printed the option */
            return refuse();
        }
    }
    if (argc - optind != 2)
        return refuse();
    if (gguf_text_starts_with(argv[optind], LOOP_DEVICE)) {
        fs_print_error(
            "mount takes the options loop and offset for itself, and made %s; to mount a "
            "model inside a file: ggufs -o offset=BYTES MODEL MOUNTPOINT",
            argv[optind]);
        return -EINVAL;
    }
    words[n++] = "--";
    words[n++] = argv[optind];
    words[n++] = argv[optind + 1];
    return n;
}

int fs_mount_helper_parse(int argc, char **argv, struct fs_options *options)
{
    char **words = calloc(2 * (size_t)argc + 4, sizeof *words);
    bool is_trial = false;
    int result = words ? translate(argc, argv, words, &is_trial) : -ENOMEM;

    *options = (struct fs_options){0};
    if (result > 0)
        result = fs_options_parse(result, words, options);
    options->is_trial = is_trial;
    free(words);
    return result;
}

int fs_mount_helper_status(int status)
{
    switch (status) {
    case EX_USAGE:
    case EX_NOPERM:
        return WRONG_CALL;
    case EX_OSERR:
        return SYSTEM_ERROR;
    default: /* below EX__BASE: translated by another process of the mount */
        return status < EX__BASE ? status : MOUNT_FAILURE;
    }
}
