/* The info of a tensor, as JSON. */
#ifndef GGUFS_FS_TENSOR_INFO_H
#define GGUFS_FS_TENSOR_INFO_H

#include "fs/tree/text.h"

/* tensors/<tensor>/info. `subject` is the struct gguf_tensor. */
int fs_tensor_info_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                         struct fs_sink *sink);

/* tensors.json: the infos of all tensors, one per line. */
int fs_tensor_infos_write(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                          struct fs_sink *sink);

#endif
