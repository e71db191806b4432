/*
 * The file SHA256SUMS: a line for each file of the tree whose view `is_summed`, as sha256sum(1) of
 * coreutils writes and checks them. Paths are relative to the root of the tree. Tensors come in
 * their order in the model, files of the whole model after them.
 *
 * The length of a line does not depend on the checksum, so the file's size costs no hashing. A read
 * hashes the files whose lines it touches, in parallel, and the checksums are kept. Any thread may
 * call these functions.
 */
#ifndef GGUFS_FS_CHECKSUMS_H
#define GGUFS_FS_CHECKSUMS_H

#include "fs/tree/core/interrupt.h"

#include <stdint.h>

struct fs_tree;
struct fs_image;

/* Get the size of the file in bytes. Returns 0. For the table of views, like the next one. */
int fs_checksums_size(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes);

/* Add the file to an image. Returns 0, -ENOMEM or -EOVERFLOW. */
int fs_checksums_build(const struct fs_tree *tree, const void *subject,
                       const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
