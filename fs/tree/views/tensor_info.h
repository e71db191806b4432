/* The info of a tensor, as JSON. */
#ifndef GGUFS_FS_TENSOR_INFO_H
#define GGUFS_FS_TENSOR_INFO_H

#include "fs/tree/core/text.h"
#include "gguf/model.h"

/* tensors/<tensor>/info. `subject` is the struct gguf_tensor. */
fs_text_writer fs_tensor_info_write;

/* Write the shape as a JSON array. */
void fs_tensor_shape_write(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                           struct fs_sink *sink);

/* tensors.json: the infos of all tensors, one per line. */
fs_text_writer fs_tensor_infos_write;

#endif
