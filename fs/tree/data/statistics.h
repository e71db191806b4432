/* Statistics of the values of a tensor, computed by all processors. */
#pragma once

#include "fs/tree/core/interrupt.h"
#include "gguf/model.h"

#include <stdint.h>

#define FS_STATISTICS_BINS 64

/* The place of a value that does not occur. */
#define FS_NOWHERE UINT64_MAX

/*
 * Counts of finite values. Bin i counts values from (first + i) * 2^exponent up to, but excluding,
 * (first + i + 1) * 2^exponent. All edges are exact, and the edges of a grid are also edges of all
 * finer grids, so that finer counts can be added up. The exponent is the least for which the bins
 * hold all values and are no finer than the numbers.
 */
struct fs_histogram {
    int64_t first;
    int exponent;
    uint64_t counts[FS_STATISTICS_BINS];
};

struct fs_statistics {
    uint64_t n_finite, n_zeros, n_nan, n_infinite;
    /* Indices in row-major order, or FS_NOWHERE. */
    uint64_t first_nan, first_infinite;

    /* Over the finite values; undefined if n_finite is 0. */
    float min, max;
    double mean;
    double squares; /* the sum of the squares of the distances from the mean */
    struct fs_histogram histogram;

    uint64_t n_blocks;          /* 0 if the type has no scales of limited range … */
    uint64_t n_scales_at_limit; /* … see `is_scale_at_limit` in dequant/types.h */
};

/*
 * Decode the tensor, whose type must have a decoder, to float32, and compute its statistics. They
 * do not depend on the number of threads. The memory used does not depend on the tensor. Returns 0,
 * -ENOMEM, -EINTR if interrupted, or the error of gguf_file_read().
 */
int fs_statistics_compute(const struct gguf_model *model, const struct gguf_tensor *tensor,
                          const struct fs_interrupt *interrupt, struct fs_statistics *statistics);

/* Return the standard deviation of all finite values, as numpy.std() gives it; 0 for none. */
double fs_standard_deviation(const struct fs_statistics *statistics);

/* Return the lower edge of bin i, or with FS_STATISTICS_BINS the upper edge of the last. */
double fs_histogram_edge(const struct fs_histogram *histogram, unsigned i);

/*
 * Cache of tensor statistics: 4,096 direct-mapped entries, at most 3 MB. Any thread may call its
 * functions.
 */
struct fs_statistics_cache;

/* Return an empty cache, or NULL if out of memory. */
struct fs_statistics_cache *fs_statistics_cache_make(const struct gguf_model *model);
void fs_statistics_cache_free(struct fs_statistics_cache *cache);

/*
 * Get the statistics of a tensor of the model. They are computed, by fs_statistics_compute(),
 * unless the cache has them and the model has not changed since. Statistics of a growing source are
 * never cached, because its generation stays the same while data arrive. Returns the errors of
 * fs_statistics_compute().
 */
int fs_statistics_cache_get(struct fs_statistics_cache *cache, const struct gguf_tensor *tensor,
                            const struct fs_interrupt *interrupt, struct fs_statistics *statistics);
