/* A tensor's values in blocks of another type. */
#ifndef GGUFS_FS_ENCODED_H
#define GGUFS_FS_ENCODED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's values, as blocks of `type`, to `out`.
 * Decodes and encodes only the blocks in this range. The tensor must have a decoder and rows of
 * whole blocks, the type an encoder, and the range must lie in the blocks. Returns 0 or the error
 * of gguf_source_lend().
 */
int fs_encoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    const struct dequant_type *type, uint64_t offset, size_t length, char *out);

#endif
