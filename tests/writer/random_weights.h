/*
 * Fills tensors of sample models with pseudo-random weights. The bytes are the same on every
 * machine: all random numbers are integers, and no floating-point result depends on how the
 * compiler arranges the operations.
 */
#pragma once

#include "dequant/types.h"

#include <stddef.h>
#include <stdint.h>

/* Return the row of the type table for ggml's name of a type, which must be in the table. */
const struct dequant_type *sample_type(const char *name);

struct sample_random {
    uint64_t state; /* start with any number */
};

/*
 * Fill n_blocks blocks of `type` with finite values of standard deviation `std`, bell-shaped around
 * `mean` in the number types F32, F16 and BF16. In the quantized types, all integers are equally
 * frequent, and the mean is 0. The type must be a row of the table of fillers in random_weights.c.
 */
void sample_fill_blocks(struct sample_random *r, const struct dequant_type *type,
                        unsigned char *blocks, size_t n_blocks, float mean, float std);
