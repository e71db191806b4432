/*
 * The types of the table from which a tree is made: a row for every kind of file, directory and
 * link. The table itself is fs/tree/views/views.c.
 */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/core/names.h"
#include "fs/tree/core/nodes.h"
#include "fs/tree/core/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An array of subjects. `first` is NULL for the model, which is not an array. */
struct fs_subject_list {
    const void *first;
    uint64_t n;
    size_t stride;
};

/* A kind of subjects that nodes can show: keys, tensors, shards, or the model itself. */
struct fs_subjects {
    struct fs_subject_list (*list)(const struct fs_tree *tree);
    /* Return the true name of a subject, for messages; NULL where file names never collide. */
    struct gguf_string (*name)(const void *subject);
};

struct fs_placeholder {
    const char *text; /* "<tensor>" */
    const struct fs_subjects *subjects;
    /* Return the name to escape as the file name. NULL: `write` makes the file name. */
    struct gguf_string (*name)(const void *subject);
    /* Write a file name that ends with a suffix of at most 32 safe bytes. */
    void (*write)(const struct fs_tree *tree, const void *subject, const char *suffix,
                  char file_name[FS_NAME_BYTES]);
};

/* Return true if the subject of a row has a node. */
typedef bool fs_view_condition(const struct fs_tree *tree, const void *subject);

/* Add the segments of a file to an empty image. Returns 0 or a negative errno. */
typedef int fs_view_builder(const struct fs_tree *tree, const struct fs_node *node,
                            const struct fs_interrupt *interrupt, struct fs_image *image);

/* Get the size of a file without building it. Returns 0 or a negative errno. */
typedef int fs_view_size(const struct fs_tree *tree, const struct fs_node *node,
                         uint64_t *size_bytes);

/*
 * A row. `subject` is what a node shows: the struct gguf_key, gguf_tensor or fs_shard that the
 * path's placeholders stand for, or NULL for the model.
 */
struct fs_view {
    /* Path template of the node, see paths.h. Directories above it are added automatically. */
    const char *path;
    fs_view_condition *applies; /* NULL: all subjects have the node */

    /* A text that is written when the file is opened, or an image of any segments: */
    fs_text_writer *write;
    fs_view_builder *build;
    fs_view_size *size; /* with `build`; NULL if the file must be built to know its size */

    /* For builders of several files: the id of a dequant_type, and a part of the model. */
    uint32_t element_type;
    unsigned part; /* of facts->parts */

    /* The file has a line in SHA256SUMS. It must have a `build`. */
    bool is_summed;

    /* Target of a link: a path template, relative to the link's directory. */
    const char *target;
};

/* Return the kind of a row's nodes: without contents and target, they are directories. */
static inline enum fs_node_kind fs_view_kind(const struct fs_view *view)
{
    if (view->target)
        return FS_LINK;
    return view->write || view->build ? FS_FILE : FS_DIRECTORY;
}

struct fs_table {
    const struct fs_view *views;
    size_t n_views;
    const struct fs_placeholder *placeholders;
    size_t n_placeholders;
    const struct fs_subjects *const *subjects; /* NULL-terminated; the first is the model */
};
