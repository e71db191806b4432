/* The command line of ggufs, as command_line.h parses it. */
#pragma once

#include "fs/mount/mount_options.h"
#include "fs/tree/facts/export.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/views/summary_values.h"
#include "fs/tree/facts/split.h"
#include "gguf/edits.h"
#include "gguf/model.h"
#include "gguf/support/option_parser.h"
#include "gguf/support/template_options.h"

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
    FS_RENDER,
    FS_STATUS,
    FS_HELP,
    FS_VERSION,
    FS_N_COMMANDS,
};

struct fs_options {
    enum fs_command command;

    const char **models;   /* one per model; of several shards of a model, the first */
    int n_models;          /* 1; with FS_DIFF 2; with FS_INFO and FS_CHECK at least 1 */
    const char *projector; /* a file with the encoders of the model; NULL: none */
    const char *directory; /* MOUNTPOINT, or the DIR of FS_EXTRACT */
    const char **paths;    /* in the tree, for FS_LIST, FS_CAT, FS_EXTRACT; patterns of names of
                              tensors for FS_STATS, FS_DIFF */
    int n_paths;

    struct gguf_open_options open;
    struct gguf_edits edits;                /* in the order of the command line */
    struct fs_split split;                  /* of split/; all zero: none */
    uint64_t hf_shard_bytes;                /* limit per file in hf/; 0: FS_HF_SHARD_BYTES */
    enum fs_dtype dtype;                    /* of safetensors files */
    enum fs_export_choice export;           /* of model.gguf and split/ */
    bool data;                              /* with FS_CHECK: read all tensor data */
    unsigned loader;                        /* with FS_CHECK: GGUF_LOADER_…; 0: none */
    bool json;                              /* print JSON instead of text for people */
    struct gguf_template_options variables; /* with FS_RENDER */
    const char *template; /* with FS_RENDER: the template's name; NULL: the default */
    bool tokens;          /* with FS_RENDER: print the parts of the prompt, with control tokens */
    bool layers;          /* with FS_INFO: print a line per layer */
    const char *no_list;  /* after --layers, so that it may be the model; NULL: none */
    struct fs_cache_choice cache; /* with FS_INFO */
    bool dry_run;                 /* print what the tree would have instead */
    bool force;                   /* with FS_EXTRACT: replace files that differ */

    struct fs_mount_options mount;
    /*
     * Hash of all options that may change the contents of the tree, that is all but options of the
     * mount; 0 without any.
     */
    uint64_t content_options;

    struct gguf_command_line line; /* models and paths point into its words */
};
