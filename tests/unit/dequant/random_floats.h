/* Random floats, the same on every run, and a measure of error. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Fill `out` with n floats between low and high, and advance the seed. */
void random_floats(uint32_t *seed, float low, float high, float *out, size_t n);

/* Return Σ (found - expected)² / Σ expected². */
double error_of(const float *found, const double *expected, size_t n);
