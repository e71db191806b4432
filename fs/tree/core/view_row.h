/* The table from which a tree is made: a row for every kind of file, directory and link. */
#ifndef GGUFS_FS_VIEW_ROW_H
#define GGUFS_FS_VIEW_ROW_H

#include "fs/tree/core/image.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/core/names.h"
#include "fs/tree/core/nodes.h"
#include "fs/tree/core/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kind of subjects that nodes can show: keys, tensors, shards, or the model itself. */
struct fs_subjects {
    uint64_t (*count)(const struct fs_tree *tree);
    const void *(*at)(const struct fs_tree *tree, uint64_t index); /* NULL for the model */
    /* Return the true name of a subject, for messages; NULL where file names never collide. */
    struct gguf_string (*name)(const void *subject);
};

struct fs_placeholder {
    const char *text; /* "<tensor>" */
    const struct fs_subjects *subjects;
    /* Write the subject's name and a suffix of at most 32 safe bytes as a file name. */
    void (*write)(const struct fs_tree *tree, const void *subject, const char *suffix,
                  char file_name[FS_NAME_BYTES]);
};

/*
 * A row. `subject` is what a node shows: the struct gguf_key, gguf_tensor or fs_shard that the
 * path's placeholders stand for, or NULL for the model.
 */
struct fs_view {
    /* Path template of the node, see paths.h. Directories above it are added automatically. */
    const char *path;
    enum fs_node_kind kind;
    /* Return true if the subject has this node. NULL: all do. */
    bool (*applies)(const struct fs_tree *tree, const void *subject);

    /*
     * A file is either a text that is written when the file is opened, or an image of any segments.
     * Set `write` or `build`.
     */
    fs_text_writer *write;
    /* Add the segments to an empty image. Returns 0 or a negative errno. */
    int (*build)(const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, struct fs_image *image);
    /*
     * Get the size of a file that is built, without building it. Returns 0 or a negative errno.
     * NULL if the file must be built to know its size.
     */
    int (*size)(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes);

    /* Opening the file can take minutes, because `build` computes its contents. */
    bool is_slow;

    /* The file has a line in SHA256SUMS. It must have a `build`. */
    bool is_summed;

    /* Target of a link: a path template, relative to the link's directory. */
    const char *target;
};

struct fs_table {
    const struct fs_view *views;
    size_t n_views;
    const struct fs_placeholder *placeholders;
    size_t n_placeholders;
    const struct fs_subjects *const *subjects; /* NULL-terminated; the first is the model */
};

#endif
