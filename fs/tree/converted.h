/* A tensor's data in the form of a current GGUF file: little-endian, in current block types. */
#ifndef GGUFS_FS_CONVERTED_H
#define GGUFS_FS_CONVERTED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's data as little-endian blocks of the
 * type dequant_modern() to `out`, rows one after the other. The range must lie in these data.
 * Returns 0 or the error of gguf_source_lend().
 */
int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out);

#endif
