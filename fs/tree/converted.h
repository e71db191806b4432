/* A tensor's data as a GGUF file of today has them: little-endian, in today's blocks. */
#ifndef GGUFS_FS_CONVERTED_H
#define GGUFS_FS_CONVERTED_H

#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Writes bytes `offset` to `offset + length` of the tensor's data, whose blocks become
 * little-endian ones of the type dequant_modern(), which has as many bytes. The range must lie in
 * the data. Returns 0 or what gguf_map_read() does.
 */
int fs_converted_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      uint64_t offset, size_t length, char *out);

#endif
