#include "tests/unit/dequant/random_floats.h"

void random_floats(uint32_t *seed, float low, float high, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        out[i] = low + (high - low) * (float)(*seed >> 8) / 16777216.0f;
    }
}

double error_of(const float *found, const double *expected, size_t n)
{
    double differences = 0, sum = 0;

    for (size_t i = 0; i < n; i++) {
        differences += ((double)found[i] - expected[i]) * ((double)found[i] - expected[i]);
        sum += expected[i] * expected[i];
    }
    return sum > 0 ? differences / sum : differences;
}
