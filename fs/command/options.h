/* The command line of ggufs, parsed. */
#ifndef GGUFS_FS_OPTIONS_H
#define GGUFS_FS_OPTIONS_H

#include "fs/mount/mount_options.h"
#include "fs/tree/export.h"
#include "fs/tree/safetensors.h"
#include "gguf/edits.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/* The command that ggufs runs. */
enum fs_command {
    FS_MOUNT,
    FS_INFO,
    FS_LIST,
    FS_CAT,
    FS_EXTRACT,
    FS_STATS,
    FS_DIFF,
    FS_CHECK,
    FS_STATUS,
    FS_HELP,
    FS_VERSION,
    FS_N_COMMANDS,
};

struct fs_options {
    enum fs_command command;

    const char **models;   /* one per model; of several shards of a model, the first */
    int n_models;          /* 1; with FS_DIFF 2; with FS_INFO and FS_CHECK at least 1 */
    const char *directory; /* MOUNTPOINT, or the DIR of FS_EXTRACT */
    const char **paths;    /* in the tree, for FS_LIST, FS_CAT, FS_EXTRACT; patterns of names of
                              tensors for FS_STATS, FS_DIFF */
    int n_paths;

    struct gguf_open_options open;
    struct gguf_edits edits;      /* in the order of the command line */
    uint64_t split_bytes;         /* limit of tensor data per file in split/; 0: no split/ */
    uint64_t hf_shard_bytes;      /* the same in hf/; 0: the usual one */
    enum fs_dtype dtype;          /* of safetensors files */
    enum fs_export_choice export; /* of model.gguf and split/ */
    bool data;                    /* with FS_CHECK: read all tensor data */
    bool json;                    /* print JSON instead of text for people */
    const char *imatrix;          /* with FS_DIFF: weights of the columns; NULL: none */
    const char *svg;              /* with FS_DIFF: the file for a picture; NULL: none */
    bool force;                   /* with FS_EXTRACT: replace files that differ */

    struct fs_mount_options mount;
    bool is_sloppy; /* ignore unknown options after -o */
    bool is_trial;  /* of mount(8): stop after parsing */
    /*
     * A hash of all options that do not only concern the mount: they may change what is in the
     * tree. 0: none were given.
     */
    uint64_t content_options;

    const char **arguments; /* positional arguments; models and paths point into it */
    int n_arguments;
    const char **fuse_options; /* for libfuse: "-d", or as written after -o */
    int n_fuse_options;
    char **owned; /* copies of the -o words, which other members point into */
    int n_owned;
};

/*
 * Parse the command line. Prints errors to stderr. Makes no libfuse call. Returns 0, -EINVAL,
 * -ENOMEM, or the error of reading a file that an edit names; call fs_options_free() in every
 * case. `argv` must outlive `options`.
 */
int fs_options_parse(int argc, char **argv, struct fs_options *options);

void fs_options_free(struct fs_options *options);

#endif
