/* Numbers as decimal text. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Size of the buffer for one number; no number needs all of it. */
#define FS_NUMBER_BYTES 40

/* Write a number without a NUL to `out`, which must hold FS_NUMBER_BYTES. Return its length. */
size_t fs_write_unsigned(uint64_t number, char *out);
size_t fs_write_signed(int64_t number, char *out);

/* Return the number of digits: the length that fs_write_unsigned() returns. */
unsigned fs_count_digits(uint64_t number);

/*
 * Write a floating-point number like Python's repr(), in the fewest digits that read back the same:
 * "0.1", "1.0", "-0.0", "1e-05", "1.5e+300"; NaN and infinities as "null". The digits of a float
 * read back to the same float, directly or through a double, so 0.1f is "0.1". Returns the length.
 */
size_t fs_write_float(float value, char *out);
size_t fs_write_double(double value, char *out);
