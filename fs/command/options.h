/* The command line. One table holds every option: the parser and --help are made from it. */
#ifndef GGUFS_FS_OPTIONS_H
#define GGUFS_FS_OPTIONS_H

#include "fs/mount/mount_options.h"
#include "gguf/edits.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

enum fs_command { FS_MOUNT, FS_CHECK, FS_HELP, FS_VERSION };

struct fs_options {
    enum fs_command command;
    const char **paths; /* MODEL MOUNTPOINT, or the models to check */
    int n_paths;

    struct gguf_open_options open;
    bool data;               /* with FS_CHECK */
    uint64_t split_bytes;    /* the most data in a file of split/; 0: no such files */
    struct gguf_edits edits; /* from -o set, -o unset and --edits, in their order */

    struct gguf_open_options model; /* what MODEL does not say itself */
    char *family;                   /* owned: what open.family points to */

    struct fs_mount_options mount;
};

/*
 * Parses the command line and prints what is wrong with it to stderr. Returns 0 or -EINVAL.
 * fs_options_free() is to be called in both cases.
 */
int fs_options_parse(int argc, char **argv, struct fs_options *options);

void fs_options_free(struct fs_options *options);

void fs_options_print_usage(FILE *stream);
void fs_options_print_help(FILE *stream);

#endif
