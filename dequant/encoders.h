/* The reference of what writes floats in 16 bits. The contract: dequant_encode_fn in kernels.h. */
#ifndef GGUFS_DEQUANT_ENCODERS_H
#define GGUFS_DEQUANT_ENCODERS_H

#include <stddef.h>

void dequant_to_f16(const void *restrict values, void *restrict out, size_t n);
void dequant_to_bf16(const void *restrict values, void *restrict out, size_t n);

#endif
