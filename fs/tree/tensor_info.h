/* The info of a tensor, as JSON. */
#ifndef GGUFS_FS_TENSOR_INFO_H
#define GGUFS_FS_TENSOR_INFO_H

#include "fs/tree/text.h"
#include "gguf/model.h"

/* tensors/<tensor>/info. `subject` is the struct gguf_tensor. */
int fs_tensor_info_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                         struct fs_sink *sink);

/* Get the shape, the slowest dimension first. Returns the number of dimensions. */
uint32_t fs_tensor_shape(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                         uint64_t shape[GGUF_MAX_DIMS]);

/*
 * Find the first byte of the tensor's data; if they are in parts, see gguf_source_find_pieces().
 * The path is the name of the model file, without its directory.
 */
struct gguf_pieces fs_tensor_pieces(const struct fs_tree *tree, const struct gguf_tensor *tensor);

/* Write the shape as a JSON array. */
void fs_tensor_shape_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                           struct fs_sink *sink);

/* tensors.json: the infos of all tensors, one per line. */
int fs_tensor_infos_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                          struct fs_sink *sink);

#endif
