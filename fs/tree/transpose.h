/* Transposes matrices of numbers of 16 or 32 bits, in blocks that fit into vectors of 16 bytes. */
#ifndef GGUFS_FS_TRANSPOSE_H
#define GGUFS_FS_TRANSPOSE_H

#include <stddef.h>

/*
 * Copy a matrix of n_rows rows so that element (i, j) becomes (j, i). A number has number_bytes, 2
 * or 4, bytes; pitches are the bytes from one row to the next. The matrices do not overlap, and may
 * have any alignment.
 */
void fs_transpose(const void *from, size_t from_pitch, void *to, size_t to_pitch, size_t n_rows,
                  size_t n_columns, size_t number_bytes);

#endif
