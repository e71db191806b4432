/* Copies the contents of a file of the tree, decoded with all processors. */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/tree_core.h"

/*
 * Receive a chunk of a file: `n_bytes` bytes, which start at `offset`. Called by one thread at a
 * time, in the order of the file. Returns 0 or a negative errno, which ends the copying.
 */
typedef int fs_chunk_receiver(void *user, uint64_t offset, const char *bytes, size_t n_bytes);

/*
 * Pass all bytes of an image to `receive`. `interrupt` may be NULL; it may be checked by several
 * threads at once. Returns 0, or the error of `receive` or fs_image_read_interruptible().
 */
int fs_copy_file(const struct fs_image *image, const struct fs_interrupt *interrupt,
                 fs_chunk_receiver *receive, void *user);

/*
 * Return the work to copy a file, in bytes: its size and, for SHA256SUMS, the size of all files
 * listed in it, whose progress fs_interrupt.advance() reports.
 */
uint64_t fs_work_bytes(struct fs_tree *tree, fs_node_index node, uint64_t size_bytes);
