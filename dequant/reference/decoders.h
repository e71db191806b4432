/*
 * The reference decoders, one per type, in portable C. Their contract is that of the `decode`
 * member of struct dequant_type.
 *
 * Bit-exact means that the order of the float operations is part of the format: d * scale is
 * rounded before it is multiplied by q. Anything that is exact (integers, signs, conversions of
 * integers below 2^24) may be done in any order.
 */
#ifndef GGUFS_DEQUANT_REFERENCE_DECODERS_H
#define GGUFS_DEQUANT_REFERENCE_DECODERS_H

#include "dequant/types.h"

/*
 * Defines dequant_decode_TYPE as a loop over the static function TYPE_block, which decodes one
 * struct dequant_TYPE to `elements` floats.
 */
#define DEQUANT_DEFINE_DECODER(type, elements)                                                     \
    void dequant_decode_##type(const void *restrict blocks, float *restrict out, size_t n_blocks)  \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_block(&block[i], out + i * (elements));                                         \
    }

/* decode_numbers.c */
dequant_decode_fn dequant_decode_f32, dequant_decode_f16, dequant_decode_bf16, dequant_decode_f64;
dequant_decode_fn dequant_decode_i8, dequant_decode_i16, dequant_decode_i32, dequant_decode_i64;

/* decode_q.c */
dequant_decode_fn dequant_decode_q1_0, dequant_decode_q2_0, dequant_decode_q4_0;
dequant_decode_fn dequant_decode_q4_1, dequant_decode_q5_0, dequant_decode_q5_1;
dequant_decode_fn dequant_decode_q8_0, dequant_decode_q8_1;

/* decode_k.c */
dequant_decode_fn dequant_decode_q2_k, dequant_decode_q3_k, dequant_decode_q4_k;
dequant_decode_fn dequant_decode_q5_k, dequant_decode_q6_k, dequant_decode_q8_k;

/* decode_iq.c */
dequant_decode_fn dequant_decode_iq1_s, dequant_decode_iq1_m, dequant_decode_iq2_xxs;
dequant_decode_fn dequant_decode_iq2_xs, dequant_decode_iq2_s, dequant_decode_iq3_xxs;
dequant_decode_fn dequant_decode_iq3_s, dequant_decode_iq4_nl, dequant_decode_iq4_xs;

/* decode_ternary.c */
dequant_decode_fn dequant_decode_tq1_0, dequant_decode_tq2_0;

/* decode_fp4.c */
dequant_decode_fn dequant_decode_mxfp4, dequant_decode_nvfp4;
bool dequant_mxfp4_has_nan_scale(const void *block);
bool dequant_nvfp4_has_nan_scale(const void *block);

/* decode_old.c */
dequant_decode_fn dequant_decode_era0_q4_0, dequant_decode_era0_q4_1, dequant_decode_era0_q4_2;
dequant_decode_fn dequant_decode_era0_q4_3, dequant_decode_era0_q5_0, dequant_decode_era0_q5_1;
dequant_decode_fn dequant_decode_era1_q4_0, dequant_decode_era1_q4_1, dequant_decode_old_q8_0;

/* Twice the values of E2M1 (OCP Microscaling Formats 1.0); minus zero is a plain zero, as in ggml.
 */
extern const int8_t dequant_doubled_e2m1[16];

#endif
