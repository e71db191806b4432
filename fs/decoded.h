/* A tensor's values as bytes. */
#ifndef GGUFS_FS_DECODED_H
#define GGUFS_FS_DECODED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Writes bytes `offset` to `offset + length` of the tensor's values as little-endian float32 in the
 * order in which they are stored (row-major). Decodes only the blocks that this touches, whole ones
 * straight into `out`. The tensor must have a decoder, and the range must lie in its values.
 * Reads the source without a guard. Returns 0, or -EIO if the source has shrunk.
 */
int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out);

#endif
