/* The values of a tensor as float32. */
#ifndef GGUFS_FS_DECODED_H
#define GGUFS_FS_DECODED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's values, as little-endian float32 in
 * row-major order, to `out`. Only the blocks in this range are decoded, whole ones straight into
 * `out`. The tensor must have a decoder, and the range must lie in its values. Returns 0 or what
 * gguf_source_lend() does.
 */
int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out);

/* Decode n_blocks blocks of a row, of either byte order; otherwise as dequant_decode_row(). */
void fs_decode(const struct gguf_tensor *tensor, struct dequant_row row, const uint8_t *blocks,
               float *out, size_t n_blocks);

#endif
