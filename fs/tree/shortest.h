/* Floating-point numbers in the fewest digits that read back the same. */
#ifndef GGUFS_FS_SHORTEST_H
#define GGUFS_FS_SHORTEST_H

#define FS_SHORTEST_BYTES 32

/*
 * Writes the number as Python's repr() does, NUL-terminated: "0.1", "1.0", "-0.0", "1e-05",
 * "1.5e+300"; NaN and infinities as "null". The float's digits are those that read back to the same
 * float, directly or through a double, so 0.1f is "0.1". `number` must hold FS_SHORTEST_BYTES.
 */
void fs_shortest_float(float value, char *number);
void fs_shortest_double(double value, char *number);

#endif
