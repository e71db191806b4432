/* See fs/tree/data/statistics_kernels.h. */
#include "fs/tree/data/statistics_kernels.h"

#include <string.h>

#define JOIN2(set, name) fs_##set##_##name
#define JOIN(set, name)  JOIN2(set, name)
#define KERNEL(name)     JOIN(DEQUANT_SET, name)

/* Vectors of the compiler, which become as many registers as the set needs for them. */
typedef float floats __attribute__((vector_size(FS_STATISTICS_LANES * sizeof(float))));
typedef double doubles __attribute__((vector_size(FS_STATISTICS_LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(FS_STATISTICS_LANES * sizeof(int64_t))));

/* Vectors are passed by address: a set without registers for them has no way to pass them. */
static inline void load(const float *values, doubles *lanes)
{
    floats loaded;

    memcpy(&loaded, values, sizeof loaded);
    *lanes = __builtin_convertvector(loaded, doubles);
}

/* Load n values; if there are more lanes, the others become 0. */
static inline void load_some(const float *values, size_t n, doubles *lanes)
{
    float some[FS_STATISTICS_LANES] = {0};

    if (n >= FS_STATISTICS_LANES) {
        load(values, lanes);
        return;
    }
    memcpy(some, values, n * sizeof *some);
    load(some, lanes);
}

static inline double add_lanes(const doubles *lanes)
{
    double sums[FS_STATISTICS_LANES];

    memcpy(sums, lanes, sizeof sums);
    for (size_t n = FS_STATISTICS_LANES / 2; n > 0; n /= 2)
        for (size_t i = 0; i < n; i++)
            sums[i] += sums[i + n];
    return sums[0];
}

/* Map float bits to integers in the same order, -0 before 0; self-inverse. */
static inline int32_t order_of(int32_t bits)
{
    return bits ^ (int32_t)(-(uint32_t)(bits < 0) >> 1);
}

static inline float float_of(int32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

void KERNEL(get_range)(const float *values, size_t n, struct fs_range *range)
{
    int32_t min = INT32_MAX, max = INT32_MIN;
    uint32_t n_zeros = 0, n_others = 0;

#pragma omp simd reduction(min : min) reduction(max : max) reduction(+ : n_zeros, n_others)
    for (size_t i = 0; i < n; i++) {
        int32_t bits, magnitude;

        memcpy(&bits, &values[i], sizeof bits);
        magnitude = bits & INT32_MAX;
        bits = order_of(bits);
        min = bits < min ? bits : min;
        max = bits > max ? bits : max;
        n_zeros += magnitude == 0;
        n_others += magnitude >= 0x7f800000; /* infinity */
    }
    /* 0 for -0, too. */
    *range = (struct fs_range){float_of(order_of(min)) + 0.0F, float_of(order_of(max)) + 0.0F,
                               n_zeros, n_others == 0};
}

double KERNEL(sum)(const float *values, size_t n, double from)
{
    doubles sums = {0};
    const size_t n_whole = n - n % FS_STATISTICS_LANES;

    for (size_t i = 0; i < n_whole; i += FS_STATISTICS_LANES) {
        doubles lanes;

        load(values + i, &lanes);
        sums += lanes - from;
    }
    for (size_t i = n_whole; i < n; i++)
        sums[i - n_whole] += (double)values[i] - from;
    return add_lanes(&sums);
}

double KERNEL(sum_squares)(const float *values, size_t n, double from)
{
    doubles sums = {0};
    const size_t n_whole = n - n % FS_STATISTICS_LANES;

    for (size_t i = 0; i < n_whole; i += FS_STATISTICS_LANES) {
        doubles distance;

        load(values + i, &distance);
        distance -= from;
        sums += distance * distance;
    }
    for (size_t i = n_whole; i < n; i++) {
        const double distance = (double)values[i] - from;

        sums[i - n_whole] += distance * distance;
    }
    return add_lanes(&sums);
}

void KERNEL(find_bins)(const float *values, size_t n, double scale, int first, uint8_t *bins)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++) {
        const double place = (double)values[i] * scale; /* exact */
        const int towards_zero = (int)place;

        bins[i] = (uint8_t)(towards_zero - ((double)towards_zero > place) - first);
    }
}

void KERNEL(compare)(const float *a, const float *b, size_t n, struct fs_products *products)
{
    doubles aa = {0}, bb = {0}, ab = {0}, dd = {0};
    doubles largest = {0};
    double of_lanes[FS_STATISTICS_LANES];

    for (size_t i = 0; i < n; i += FS_STATISTICS_LANES) {
        const size_t left = n - i;
        doubles of_a, of_b, d;
        masks magnitude, is_larger;

        load_some(a + i, left, &of_a);
        load_some(b + i, left, &of_b);
        d = of_b - of_a;
        magnitude = (masks)d & INT64_MAX;
        is_larger = (doubles)magnitude > largest;
        largest = (doubles)((magnitude & is_larger) | ((masks)largest & ~is_larger));
        aa += of_a * of_a;
        bb += of_b * of_b;
        ab += of_a * of_b;
        dd += d * d;
    }
    memcpy(of_lanes, &largest, sizeof of_lanes);
    for (size_t i = 1; i < FS_STATISTICS_LANES; i++)
        of_lanes[0] = of_lanes[i] > of_lanes[0] ? of_lanes[i] : of_lanes[0];
    *products = (struct fs_products){add_lanes(&aa), add_lanes(&bb), add_lanes(&ab), add_lanes(&dd),
                                     of_lanes[0]};
}
