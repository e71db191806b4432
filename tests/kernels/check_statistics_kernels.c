/* The kernels of statistics and comparisons; see fs/tree/data/statistics_kernels.h. */
#include "fs/tree/data/statistics_kernels.h"
#include "tests/kernels/check_kernels.h"
#include "tests/unit/dequant/random_blocks.h"

#include <math.h>
#include <string.h>

enum { N = 200 };

static const struct fs_statistics_kernels *const plain =
    &fs_statistics_kernel_sets[DEQUANT_SET_scalar];

/* Random numbers of all sizes, among them zeros of both signs. */
static void fill(uint64_t *state, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = next_random(state);

        x[i] = ldexpf((float)(bits >> 40) - (float)(1 << 23), (int)(bits % 40) - 60);
        if (bits % 17 == 0)
            x[i] = bits % 2 == 0 ? 0.0F : -0.0F;
    }
}

static bool is_same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool check_range(const struct fs_statistics_kernels *kernels, const float *x, size_t n)
{
    struct fs_range expected, ours;

    plain->get_range(x, n, &expected);
    kernels->get_range(x, n, &ours);
    return is_same(expected.min, ours.min) && is_same(expected.max, ours.max) &&
           expected.n_zeros == ours.n_zeros && expected.is_finite == ours.is_finite;
}

static bool check_sums(const struct fs_statistics_kernels *kernels, const float *x, size_t n)
{
    return is_same(plain->sum(x, n, 0.01), kernels->sum(x, n, 0.01)) &&
           is_same(plain->sum_squares(x, n, 0.01), kernels->sum_squares(x, n, 0.01));
}

static bool check_bins(const struct fs_statistics_kernels *kernels, const float *x, size_t n)
{
    uint8_t expected[N + 1] = {0}, ours[N + 1] = {0};
    struct fs_range range;
    double scale = 1;

    plain->get_range(x, n, &range);
    while ((range.max - range.min) * scale > 200)
        scale /= 2;
    plain->find_bins(x, n, scale, (int)floor(range.min * scale), expected);
    kernels->find_bins(x, n, scale, (int)floor(range.min * scale), ours);
    return memcmp(expected, ours, sizeof ours) == 0;
}

static bool check_compare(const struct fs_statistics_kernels *kernels, const float *x, size_t n)
{
    struct fs_products expected, ours;

    plain->compare(x, x + N, n, &expected);
    kernels->compare(x, x + N, n, &ours);
    return is_same(expected.aa, ours.aa) && is_same(expected.bb, ours.bb) &&
           is_same(expected.ab, ours.ab) && is_same(expected.dd, ours.dd) &&
           is_same(expected.largest, ours.largest);
}

void check_statistics_set(size_t set, const char *name)
{
    static float x[2 * N];
    const struct fs_statistics_kernels *kernels = &fs_statistics_kernel_sets[set];
    bool has_good_range = true, has_good_sums = true, has_good_bins = true, is_good = true;
    uint64_t state = 7;

    for (size_t n = 1; n <= N; n++) {
        fill(&state, x, 2 * N);
        has_good_sums &= check_sums(kernels, x, n);
        has_good_bins &= check_bins(kernels, x, n);
        is_good &= check_compare(kernels, x, n);
        has_good_range &= check_range(kernels, x, n);
        x[n / 2] = n % 3 == 0 ? NAN : n % 3 == 1 ? INFINITY : -INFINITY;
        has_good_range &= check_range(kernels, x, n);
    }
    count(has_good_range, name, "ranges");
    count(has_good_sums, name, "sums of distances");
    count(has_good_bins, name, "bins of histograms");
    count(is_good, name, "sums of products");
}
