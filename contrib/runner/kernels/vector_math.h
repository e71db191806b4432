/*
 * Exponentials and the hyperbolic tangent of vectors. The polynomials interpolate the functions in
 * the Chebyshev nodes of their intervals, which is close to the least error.
 */
#pragma once

#include "contrib/runner/compute/run_kernels.h"
#include "dequant/kernels/float_vectors.h"

/* The name of a kernel of the set that is compiled, DEQUANT_SET. */
#define RUN_JOIN2(set, name) run_##set##_##name
#define RUN_JOIN(set, name)  RUN_JOIN2(set, name)
#define RUN_KERNEL(name)     RUN_JOIN(DEQUANT_SET, name)

/* a where the mask is -1, b where it is 0. */
static inline float_vector chosen(int_vector mask, float_vector a, float_vector b)
{
    return (float_vector)((mask & (int_vector)a) | (~mask & (int_vector)b));
}

/*
 * exp(x) for x below 88, with an error below 1 ulp; 0 where the result is below 2^-126.
 * exp(x) = 2^k · exp(r), where k is the integer nearest to x / ln 2, so that |r| ≤ ln 2 / 2.
 */
static inline float_vector vector_exp(float_vector x)
{
    /* Adding 1.5 · 2^23 rounds to an integer, which the lower bits of the sum hold. */
    const float_vector shift = float_all(0x1.8p23f);
    const float_vector shifted = float_fused(x, float_all(0x1.715476p0f), shift);
    const float_vector k = shifted - shift;
    const int_vector bits = (int_vector)shifted - (int_vector)shift;
    const float_vector power = (float_vector)((bits + 127) << 23);
    float_vector r = float_fused(k, float_all(-0x1.62e43p-1f), x);
    float_vector sum = float_all(0x1.6d112cp-10f);

    r = float_fused(k, float_all(0x1.05c61p-29f), r);
    sum = float_fused(sum, r, float_all(0x1.120b9p-7f));
    sum = float_fused(sum, r, float_all(0x1.55551ap-5f));
    sum = float_fused(sum, r, float_all(0x1.5554dcp-3f));
    sum = float_fused(sum, r, float_all(0.5f));
    sum = float_fused(sum, r, float_all(1));
    sum = float_fused(sum, r, float_all(1));
    return chosen(x < float_all(-0x1.5d58ap6f), (float_vector){0}, sum * power);
}

/* 1 / (1 + exp(-x)), with an error below 3 ulp; 0 where exp(x) is below 2^-126. */
static inline float_vector vector_sigmoid(float_vector x)
{
    const int_vector sign = (int_vector)x & (int_vector)float_all(-0.0f);
    const float_vector e = vector_exp((float_vector)((int_vector)x | (int_vector)float_all(-0.0f)));

    return chosen(sign != 0, e, float_all(1)) / (float_all(1) + e);
}

/* tanh(x), with an error below 3 ulp. */
static inline float_vector vector_tanh(float_vector x)
{
    const int_vector sign = (int_vector)x & (int_vector)float_all(-0.0f);
    const float_vector magnitude = (float_vector)((int_vector)x ^ sign);
    const float_vector square = x * x;
    const float_vector e = vector_exp(float_all(-2) * magnitude);
    const float_vector far = (float_all(1) - e) / (float_all(1) + e);
    float_vector sum = float_all(-0x1.c7033cp-8f);

    sum = float_fused(sum, square, float_all(0x1.5fc692p-6f));
    sum = float_fused(sum, square, float_all(-0x1.b9d2aep-5f));
    sum = float_fused(sum, square, float_all(0x1.11108p-3f));
    sum = float_fused(sum, square, float_all(-0x1.555554p-2f));
    sum = float_fused(sum * square, x, x);
    return chosen(magnitude < float_all(0.5f), sum, (float_vector)((int_vector)far | sign));
}
