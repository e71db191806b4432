/*
 * The table of views: one row for every kind of file, directory and link in the tree. A new kind is
 * a row in views.c with a function that writes or builds its contents.
 */
#ifndef GGUFS_FS_VIEWS_H
#define GGUFS_FS_VIEWS_H

#include "fs/tree/image.h"
#include "fs/tree/interrupt.h"
#include "fs/tree/nodes.h"
#include "fs/tree/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
     * A file is either a text that is written when read, or an image of any segments. Set `write`
     * or `build`; `size` goes with either.
     */
    fs_text_writer *write;
    /* Add the segments to an empty image. Returns 0 or a negative errno. */
    int (*build)(const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, struct fs_image *image);
    /*
     * Get the size of a file without its contents; it must be what is written or built. Returns 0
     * or a negative errno. NULL if the file must be written or built to know its size.
     */
    int (*size)(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes);

    /* Opening the file can take minutes, because `build` computes its contents. */
    bool is_slow;

    /* The file has a line in SHA256SUMS. It must have a `build`. */
    bool is_summed;

    /* Target of a link: a path template, relative to the link's directory. */
    const char *target;
};

size_t fs_view_count(void);
const struct fs_view *fs_view_at(size_t index);

#endif
