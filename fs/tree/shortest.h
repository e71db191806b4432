/* Numbers as decimal text. */
#ifndef GGUFS_FS_SHORTEST_H
#define GGUFS_FS_SHORTEST_H

#include <stddef.h>
#include <stdint.h>

/* The room that these functions need, which is more than any number has. */
#define FS_NUMBER_BYTES 40

/* Write a number without a NUL to `out`, which must hold FS_NUMBER_BYTES. Return its length. */
size_t fs_write_unsigned(uint64_t number, char *out);
size_t fs_write_signed(int64_t number, char *out);

/* The number of digits: the length that fs_write_unsigned() returns. */
unsigned fs_count_digits(uint64_t number);

/*
 * Write a floating-point number as Python's repr() does, in the fewest digits that read back the
 * same: "0.1", "1.0", "-0.0", "1e-05", "1.5e+300"; NaN and infinities as "null". A float's digits
 * are those that read back to the same float, directly or through a double, so 0.1f is "0.1".
 */
size_t fs_write_float(float value, char *out);
size_t fs_write_double(double value, char *out);

#endif
