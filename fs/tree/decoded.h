/* A tensor's values in a number format. */
#ifndef GGUFS_FS_DECODED_H
#define GGUFS_FS_DECODED_H

#include "fs/tree/number_formats.h"
#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Write bytes `offset` to `offset + length` of the tensor's values, converted, in row-major order,
 * to `out`. Decodes only the blocks in this range, and float32 of whole ones straight into `out`.
 * The tensor must have a decoder, and the range must lie in its values. Returns 0 or the error of
 * gguf_source_lend().
 */
int fs_decoded_read(const struct gguf_model *model, const struct gguf_tensor *tensor,
                    const struct fs_conversion *conversion, uint64_t offset, size_t length,
                    char *out);

/*
 * The same without gguf_source_check(), which the caller of many short reads calls once after them.
 * *end_offset, in the tensor's file, is increased to the end of the bytes that were read.
 */
int fs_decoded_read_unchecked(const struct gguf_model *model, const struct gguf_tensor *tensor,
                              const struct fs_conversion *conversion, uint64_t offset,
                              size_t length, char *out, uint64_t *end_offset);

/* Runs of `width` elements of a tensor, from element `first` on, each `pitch` elements apart. */
struct fs_lines {
    uint64_t first;
    uint64_t pitch; /* at least `width` */
    size_t n_lines;
    size_t n_next; /* lines that follow and are read next: the CPU is asked to load them */
    size_t width;
};

/*
 * Write the values of the lines, converted, to `out`, one line after the other; otherwise like
 * fs_decoded_read_unchecked(). Short lines of whole blocks take much less time than one by one.
 */
int fs_decoded_read_lines(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          const struct fs_conversion *conversion, const struct fs_lines *lines,
                          char *out, uint64_t *end_offset);

/* Decode n_blocks blocks of a row, in either byte order; otherwise like dequant_decode_row(). */
void fs_decode_blocks(const struct gguf_tensor *tensor, struct dequant_row row,
                      const uint8_t *blocks, float *out, size_t n_blocks);

#endif
