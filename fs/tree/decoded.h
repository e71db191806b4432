/* A tensor's values as float32. */
#ifndef GGUFS_FS_DECODED_H
#define GGUFS_FS_DECODED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's values, as little-endian float32 in
 * row-major order, to `out`. Decodes only the blocks in this range, whole ones straight into `out`.
 * The tensor must have a decoder, and the range must lie in its values. Returns 0 or the error of
 * gguf_source_lend().
 */
int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    uint64_t offset, size_t length, char *out);

/* Decode n_blocks blocks of a row, in either byte order; otherwise like dequant_decode_row(). */
void fs_decode_blocks(const struct gguf_tensor *tensor, struct dequant_row row,
                      const uint8_t *blocks, float *out, size_t n_blocks);

#endif
