/* The checks of the kernel sets that lie in several files. */
#pragma once

#include "dequant/types.h"

#include <stdbool.h>
#include <stddef.h>

/* Count a check of a set, and report it if it failed. */
void count(bool is_good, const char *set, const char *what);

/* Compare the reference encoders with their definitions. */
void check_encoder_references(void);

/* Return true if an encoder of the type gives the bits of the reference. */
bool check_encoder(const struct dequant_type *type, dequant_encode_fn *encode);

/*
 * Compare a set's functions of dequant/products.h with the reference. The CPU must support the set.
 * The reference is the chosen set afterwards.
 */
void check_products(const char *set);

/* Compare the runner's kernels without vectors with their formulas, in double. */
void check_run_reference(void);

/* Compare the runner's kernels of a set with those without vectors, bit for bit. */
void check_run_set(size_t set, const char *name);

/* Compare the kernels of statistics of a set with those without vectors, bit for bit. */
void check_statistics_set(size_t set, const char *name);
