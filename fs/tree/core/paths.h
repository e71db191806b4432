/*
 * Path templates. A template is a path whose components may be placeholders: "tensors/<tensor>/f32"
 * stands for one path per tensor. The placeholders of the table say what each stands for,
 * and how a subject's name becomes a file name.
 */
#pragma once

#include "fs/tree/core/view_row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs_tree;

/* Room for any path in the tree with its NUL: a few names of up to 255 bytes. */
#define FS_PATH_BYTES 2048

/* Return the subjects of the template's placeholders: it gives one path for each. */
const struct fs_subjects *fs_path_subjects(const struct fs_table *table, const char *path_template);

/*
 * Expand the first template_bytes bytes of a template, which must end with a whole component, for a
 * subject, and write the path with a NUL. The result is safe: no component is empty, "." or "..",
 * unless the template itself has it.
 */
void fs_path_expand(const struct fs_tree *tree, const char *path_template, size_t template_bytes,
                    const void *subject, char path[FS_PATH_BYTES]);
