/* Random numbers for the tests of the runner, and comparisons with a reference in double. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Fill x with n numbers from -scale to scale, and advance the state. */
void numbers_fill(uint64_t *state, float scale, float *x, size_t n);

/* Allocate and fill n numbers. The caller frees them. */
float *numbers_make(uint64_t *state, float scale, size_t n);

/* calloc() that never fails. */
void *numbers_alloc(size_t n, size_t element_bytes);

/* Fail unless all numbers are finite and differ by at most tolerance · max |expected|. */
void numbers_expect_near(const char *what, const float *got, const double *expected, size_t n,
                         double tolerance);

/* Fail unless the numbers are equal bit for bit. */
void numbers_expect_same(const char *what, const float *got, const float *expected, size_t n);

/* Round a number to f16 and back. */
float numbers_as_f16(float x);

/* Compute rows [n_rows][width] · x in double. */
void numbers_multiply(const float *rows, size_t n_rows, size_t width, const double *x, double *out);
