/*
 * The reference of the kernels' integer products, in portable C, as dequant/forms.h defines them.
 * dequant/products.h describes the parameters.
 */
#pragma once

#include "dequant/types.h"

/* Expands DO(name in the type table, name of the block struct) for every type with a product. */
#define REFERENCE_UNPACKERS(DO)                                                                    \
    DO("Q4_0", q4_0)                                                                               \
    DO("Q4_1", q4_1)                                                                               \
    DO("Q5_0", q5_0)                                                                               \
    DO("Q5_1", q5_1)                                                                               \
    DO("Q8_0", q8_0)                                                                               \
    DO("Q2_K", q2_k)                                                                               \
    DO("Q3_K", q3_k)                                                                               \
    DO("Q4_K", q4_k)                                                                               \
    DO("Q5_K", q5_k)                                                                               \
    DO("Q6_K", q6_k)                                                                               \
    DO("IQ4_NL", iq4_nl)                                                                           \
    DO("IQ4_XS", iq4_xs)                                                                           \
    DO("Q1_0", q1_0)                                                                               \
    DO("Q2_0", q2_0)                                                                               \
    DO("TQ1_0", tq1_0)                                                                             \
    DO("TQ2_0", tq2_0)                                                                             \
    DO("MXFP4", mxfp4)                                                                             \
    DO("NVFP4", nvfp4)                                                                             \
    DO("IQ1_S", iq1_s)                                                                             \
    DO("IQ1_M", iq1_m)                                                                             \
    DO("IQ2_XXS", iq2_xxs)                                                                         \
    DO("IQ2_XS", iq2_xs)                                                                           \
    DO("IQ2_S", iq2_s)                                                                             \
    DO("IQ3_XXS", iq3_xxs)                                                                         \
    DO("IQ3_S", iq3_s)

#define REFERENCE_DECLARE(unused, name) dequant_unpack_fn reference_unpack_##name;
REFERENCE_UNPACKERS(REFERENCE_DECLARE)
#undef REFERENCE_DECLARE

dequant_quantize_fn reference_quantize;
dequant_multiply_fn reference_multiply;

void reference_quantize_column(const struct dequant_form *form, const float *x, size_t n,
                               struct dequant_activations *out, size_t stride);

void reference_unpack(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                      size_t n_rows, size_t n_elements, size_t index, struct dequant_panel *panel);
