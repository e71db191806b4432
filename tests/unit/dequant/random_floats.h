/* Floats for tests, the same on every run, and how far results are from what was expected. */
#ifndef GGUFS_TESTS_RANDOM_FLOATS_H
#define GGUFS_TESTS_RANDOM_FLOATS_H

#include <stddef.h>
#include <stdint.h>

/* Fills in n floats between low and high; the seed goes on. */
void random_floats(uint32_t *seed, float low, float high, float *out, size_t n);

/* Σ (found - expected)² / Σ expected². */
double error_of(const float *found, const double *expected, size_t n);

#endif
