/* Numbers for the tests of the runner, and how near to a reference in double they must come. */
#ifndef GGUFS_TESTS_RUN_NUMBERS_H
#define GGUFS_TESTS_RUN_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* n numbers from -scale to scale that follow from the state. */
void numbers_fill(uint64_t *state, float scale, float *x, size_t n);

/* The same, allocated; the caller frees them. */
float *numbers_make(uint64_t *state, float scale, size_t n);

/* calloc() that never fails. */
void *numbers_alloc(size_t n, size_t element_bytes);

/* Fails unless each number is finite and at most tolerance · (the largest expected one) off. */
void numbers_expect_near(const char *what, const float *got, const double *expected, size_t n,
                         double tolerance);

/* Fails unless the numbers have the same bits. */
void numbers_expect_same(const char *what, const float *got, const float *expected, size_t n);

/* Round a number to 16 bits and back. */
float numbers_as_f16(float x);

/* The product of rows [n_rows][width] with x, in double. */
void numbers_multiply(const float *rows, size_t n_rows, size_t width, const double *x, double *out);

#endif
