/*
 * Path templates. A template is a path whose components may be placeholders: "tensors/<tensor>/f32"
 * stands for one path per tensor. The table of placeholders in paths.c says what each stands for,
 * and how a subject's name becomes a file name.
 */
#ifndef GGUFS_FS_PATHS_H
#define GGUFS_FS_PATHS_H

#include "fs/tree/names.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs_tree;

/* Room for any path in the tree with its NUL: a few names of up to 255 bytes. */
#define FS_PATH_BYTES 2048

/* The folder of a tensor, given in its info. */
#define FS_TENSOR_FOLDER "tensors/<tensor>"

/* A kind of subjects that nodes can show: keys, tensors, shards, or the model itself. */
struct fs_subjects {
    uint64_t (*count)(const struct fs_tree *tree);
    const void *(*at)(const struct fs_tree *tree, uint64_t index); /* NULL for the model */
    /* Return the true name of a subject, for messages; NULL where file names never collide. */
    struct gguf_string (*name)(const void *subject);
};

/* All kinds of subjects, NULL-terminated; nodes are added in this order. */
extern const struct fs_subjects *const fs_subjects[];

/* Return the subjects of the template's placeholders: it gives one path for each. */
const struct fs_subjects *fs_path_subjects(const char *path_template);

/*
 * Divide the GGUF name blk.LAYER.REST of a tensor. Returns false if the tensor is of no layer, or
 * if it has no such name.
 */
bool fs_layer_name(const struct gguf_tensor *tensor, struct gguf_string *layer,
                   struct gguf_string *rest);

/* Return true if the template gives a path for each tensor. */
bool fs_path_is_of_tensor(const char *path_template);

/*
 * Write the path for a subject of the first template_bytes bytes of a template, which end with a
 * component, NUL-terminated. The result is safe: no component is empty, "." or "..", unless the
 * template itself has it.
 */
void fs_path_expand(const char *path_template, size_t template_bytes, const struct fs_tree *tree,
                    const void *subject, char path[FS_PATH_BYTES]);

#endif
