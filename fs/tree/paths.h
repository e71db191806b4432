/*
 * Path templates. A template is a path whose components may be placeholders: "tensors/<tensor>/f32"
 * stands for one path per tensor. The table of placeholders in paths.c says what there is one path
 * for each of, and how its name becomes a file name.
 */
#ifndef GGUFS_FS_PATHS_H
#define GGUFS_FS_PATHS_H

#include "fs/tree/names.h"

#include <stddef.h>
#include <stdint.h>

struct fs_tree;

/* Room for any path in the tree and its NUL: a handful of names of up to 255 bytes. */
#define FS_PATH_BYTES 2048

/* The folder of a tensor, which its info names. */
#define FS_TENSOR_FOLDER "tensors/<tensor>"

/* The things of one kind that nodes can be about: keys, tensors, shards; or the model itself. */
struct fs_subjects {
    uint64_t (*count)(const struct fs_tree *tree);
    const void *(*at)(const struct fs_tree *tree, uint64_t index); /* NULL for the model */
    /* The true name of one, for messages; NULL where file names never collide. */
    struct gguf_string (*name)(const void *subject);
};

/* Every kind of subjects, and a NULL; nodes are added in this order. */
extern const struct fs_subjects *const fs_subjects[];

/* The subjects for each of which the template gives a path: those of its placeholders. */
const struct fs_subjects *fs_path_subjects(const char *path_template);

/*
 * Write the path that the template gives for a subject, NUL-terminated. The result is safe: no
 * component is empty, "." or "..", unless the template itself says so.
 */
void fs_path_expand(const char *path_template, const struct fs_tree *tree, const void *subject,
                    char path[FS_PATH_BYTES]);

#endif
