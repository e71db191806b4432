/*
 * The inner loops of statistics and comparisons. The sources in fs/kernels/ are compiled once per
 * kernel set of dequant/sets.h, the plain one included, and all sets give the same bits: sums are
 * computed in FS_STATISTICS_LANES parts, element i in part i % FS_STATISTICS_LANES, which are then
 * added in pairs, halving their number.
 */
#pragma once

#include "dequant/sets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FS_STATISTICS_LANES = 8 };

struct fs_range {
    float min, max;
    size_t n_zeros;
    bool is_finite; /* all values are finite; else the other members are undefined */
};

/* Get the range of n values, at least one. */
typedef void fs_get_range_fn(const float *values, size_t n, struct fs_range *range);

/* Return the sum of the distances of n values from `from`, or of their squares. */
typedef double fs_sum_fn(const float *values, size_t n, double from);
typedef fs_sum_fn fs_sum_squares_fn;

/*
 * bins[i] = floor(values[i] * scale) - first, which must be from 0 to 255. |values[i] * scale| must
 * be below 2^31, and scale a power of two.
 */
typedef void fs_find_bins_fn(const float *values, size_t n, double scale, int first, uint8_t *bins);

/* Sums over pairs of numbers a and b, with the difference d = b - a. */
struct fs_products {
    double aa, bb, ab, dd;
    double largest; /* the largest |d| that is not NaN */
};

/* Compute the sums of n pairs. */
typedef void fs_compare_fn(const float *a, const float *b, size_t n, struct fs_products *products);

/* Expands DO(set, name) for every kernel. */
#define FS_STATISTICS_KERNELS(DO, set)                                                             \
    DO(set, get_range) DO(set, sum) DO(set, sum_squares) DO(set, find_bins) DO(set, compare)

/* The slot's `name` declares a member. NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FS_STATISTICS_SLOT(unused, name)        fs_##name##_fn *name;
#define FS_DECLARE_STATISTICS_KERNEL(set, name) fs_##name##_fn fs_##set##_##name;
#define FS_DECLARE_STATISTICS_KERNELS(set, unused)                                                 \
    FS_STATISTICS_KERNELS(FS_DECLARE_STATISTICS_KERNEL, set)

struct fs_statistics_kernels {
    FS_STATISTICS_KERNELS(FS_STATISTICS_SLOT, )
};

FS_DECLARE_STATISTICS_KERNELS(scalar, )
DEQUANT_VECTOR_SETS(FS_DECLARE_STATISTICS_KERNELS, )

/* The kernels of each set, by the indices of dequant/sets.h. */
extern const struct fs_statistics_kernels fs_statistics_kernel_sets[DEQUANT_SETS];

/* The kernels of the set that dequant_choose_kernels() chose. */
const struct fs_statistics_kernels *fs_statistics_kernels(void);
