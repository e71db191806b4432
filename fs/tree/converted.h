/* The data of a tensor as a current GGUF file has them: little-endian, in current blocks. */
#ifndef GGUFS_FS_CONVERTED_H
#define GGUFS_FS_CONVERTED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's data, with every block converted to a
 * little-endian one of the type dequant_modern(), which has as many bytes, to `out`. The range must
 * lie in the data. Returns 0 or what gguf_source_lend() does.
 */
int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out);

#endif
