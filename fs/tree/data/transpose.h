/* Transposes matrices of numbers of 16 or 32 bits, in blocks that fit into vectors of 16 bytes. */
#pragma once

#include <stddef.h>

/*
 * Copy a matrix of n_rows rows of numbers of 16 bits so that element (i, j) becomes (j, i). Pitches
 * are the bytes from one row to the next. The matrices do not overlap, and may have any alignment.
 */
void fs_transpose16(const void *from, size_t from_pitch, void *to, size_t to_pitch, size_t n_rows,
                    size_t n_columns);

/* The same for numbers of 32 bits. */
void fs_transpose32(const void *from, size_t from_pitch, void *to, size_t to_pitch, size_t n_rows,
                    size_t n_columns);
