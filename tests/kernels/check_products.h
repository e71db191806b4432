/* Comparison of integer products with the reference. */
#ifndef GGUFS_TESTS_CHECK_PRODUCTS_H
#define GGUFS_TESTS_CHECK_PRODUCTS_H

#include <stdbool.h>

/*
 * Compare the functions of dequant/products.h with the set's kernels, which the CPU supports, with
 * those of the reference. Calls `count` with the result of each test. The reference is the chosen
 * set afterwards.
 */
void check_products(const char *set,
                    void (*count)(bool is_good, const char *set, const char *what));

#endif
