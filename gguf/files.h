/*
 * The files of a model. They are all opened before any byte is read, so that a process can give up
 * the right to open files before it parses one.
 *
 * The shards of a split model, or the parts of one from before GGUF, lie in one directory. The user
 * may name any of them; the others are found by its name, see gguf/support/shard_names.h.
 */
#pragma once

#include "gguf/model.h"

#include <stdint.h>

/* After this many missing or bad shards, the others are not tried. */
#define GGUF_MAX_BAD_SHARDS 10u

/* One file: open, or the reason why it is not. */
struct gguf_opened_file {
    struct gguf_file file; /* all zero if it is not open or was taken over */
    char *path;            /* for messages; owned */
    int error;             /* negative errno of the opening, or 0 */
    enum gguf_rule rule;   /* of the error */
    char *reason;          /* message that goes with the error; owned */
};

struct gguf_files {
    struct gguf_opened_file *list; /* in the order of the shards' or parts' numbers */
    uint32_t count;                /* of shards; GGUF_MAX_PARTS, which need not exist; or 1 */
    uint32_t named;                /* index of the one that the user named */
    /*
     * From the named file's name: shard name_number, counted from 1, of name_count; 0 if it does
     * not name a shard.
     */
    uint32_t name_number, name_count;
};

/*
 * Open `path`. If it names a shard or a part, also open all others of the model. A failure to open
 * one of these is recorded for gguf_parse_files(), because only the contents prove that the model
 * has that file; after GGUF_MAX_BAD_SHARDS failures, the rest is not tried. On success
 * gguf_files_close() must be called. On failure return a negative errno with the reason in
 * `report`.
 */
int gguf_files_open(const char *path, const struct gguf_open_options *options,
                    struct gguf_files *files, struct gguf_report *report);

/* Close the files that no model has taken over. */
void gguf_files_close(struct gguf_files *files);
