/*
 * The files of a model, opened before any of their bytes is looked at, so that a process can give
 * up opening files before it parses one.
 *
 * A model that was split into several files lies in shards with names like these, next to each
 * other. Any one of them may be named; the others are found by its name alone. Source: llama.cpp's
 * llama_split_path().
 *
 *     NAME-00001-of-00003.gguf, …     numbers start at 1
 */
#ifndef GGUFS_GGUF_FILES_H
#define GGUFS_GGUF_FILES_H

#include "gguf/model.h"

#include <stdint.h>

/* The most shards of a model: what a u16 can say, as gguf-split writes it. */
#define GGUF_MAX_SHARDS 65535u

/* After so many shards that are missing or bad nobody looks for more. */
#define GGUF_MAX_BAD_SHARDS 10u

/* One file: open, or the reason why it is not. */
struct gguf_opened_file {
    struct gguf_source file; /* all zero if it is not open or was taken over */
    char *path;              /* as users know it; owned */
    int error;               /* negative errno of the opening, or 0 */
    char *reason;            /* message that goes with the error; owned */
};

struct gguf_files {
    struct gguf_opened_file *list; /* in the order of the shards' numbers */
    uint32_t count;                /* 1 if the name is not that of a shard */
    uint32_t named;                /* index of the one that the user named */
    /* What its name says: that it is shard name_number, from 1, of name_count; 0 if nothing. */
    uint32_t name_number, name_count;
};

/*
 * Open the file at `path` and, if its name is that of a shard, the others. That a shard cannot be
 * opened is noted for gguf_parse_files(), because only the keys say whether the name is right;
 * shards after the GGUF_MAX_BAD_SHARDS-th such one are not tried. `options` may be NULL. On success
 * gguf_files_close() must be called. On failure return a negative errno with the reason in
 * `report`.
 */
int gguf_files_open(const char *path, const struct gguf_open_options *options,
                    struct gguf_files *files, struct gguf_report *report);

/* Close what no model has taken over. */
void gguf_files_close(struct gguf_files *files);

#endif
