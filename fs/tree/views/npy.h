/*
 * A tensor's values as a file for numpy.load(), in version 1.0 of the format:
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
 */
#ifndef GGUFS_FS_NPY_H
#define GGUFS_FS_NPY_H

#include "fs/tree/core/view_row.h"
#include "fs/tree/core/interrupt.h"

#include <stdint.h>

/*
 * Write the header of an array in row-major order: magic, version, and a description as a Python
 * literal. `descr` is NumPy's name of the element type, for example "<f4".
 */
void fs_npy_header_write(struct fs_sink *sink, const char *descr, const uint64_t *shape,
                         uint32_t n_dims);

/* For the table of views: `subject` is the struct gguf_tensor, whose type must have a decoder. */
int fs_npy_f32_size(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes);
int fs_npy_f32_build(const struct fs_tree *tree, const void *subject,
                     const struct fs_interrupt *interrupt, struct fs_image *image);
int fs_npy_f16_size(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes);
int fs_npy_f16_build(const struct fs_tree *tree, const void *subject,
                     const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
