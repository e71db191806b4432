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
 * Returns 0 or what gguf_map_read() does.
 */
int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out);

/*
 * Decodes n_blocks blocks of a row of the tensor, of either byte order; otherwise as
 * dequant_decode_row().
 */
void fs_decode(const struct gguf_tensor *tensor, struct dequant_row row, const uint8_t *blocks,
               float *out, size_t n_blocks);

#endif
