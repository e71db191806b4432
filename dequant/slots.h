/*
 * The functions that fill the slots of the type table. dequant_SET_NAME is a set's function. Most
 * decoders of the set "scalar" are compiled from the kernels as well; dequant/reference/ has the
 * rest of it in plain C. For the contracts see dequant_decode_fn, dequant_encode_fn and
 * dequant_dot_fn.
 *
 * Bit-exact means that the order of the float operations is part of the format: d * scale is
 * rounded before it is multiplied by q. Anything that is exact (integers, signs, conversions of
 * integers below 2^24) may be done in any order.
 */
#pragma once

#include "dequant/forms.h"
#include "dequant/small_floats.h"
#include "dequant/types.h"

/*
 * Defines the decoder of a type in plain C as a loop over the static function TYPE_block, which
 * decodes one struct dequant_LAYOUT of a row to `elements` floats.
 */
#define DEQUANT_DEFINE_DECODER(type, layout, elements)                                             \
    void dequant_scalar_##type(const void *restrict blocks, float *restrict out, size_t n_blocks,  \
                               struct dequant_row row)                                             \
    {                                                                                              \
        const struct dequant_##layout *block = blocks;                                             \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_block(&block[i], row, out + i * (elements));                                    \
    }

/*
 * The slots by the files that define their functions. Each list expands DO(set, name) for every
 * name. clang-format would put each name on a line:
 */
/* clang-format off */
/* In every set. */
#define DEQUANT_CONVERTED(DO, set) \
    /* kernels_rows.c */ \
    DO(set, q4_0_4_4) DO(set, q4_0_4_8) DO(set, q4_0_8_8) DO(set, q4_0_r8) DO(set, q8_0_r8) \
    DO(set, q2_k_r4) DO(set, q3_k_r4) DO(set, q4_k_r4) DO(set, q5_k_r4) DO(set, q6_k_r4) \
    DO(set, iq2_xxs_r4) DO(set, iq2_xs_r4) DO(set, iq3_xxs_r4) DO(set, iq3_s_r4) \
    DO(set, iq2_s_r4) DO(set, iq4_xs_r8) DO(set, mxfp4_r8) DO(set, q8_k_r16) DO(set, q8_k_r8) \
    DO(set, iq2_tn) DO(set, bare_iq1_bn) DO(set, bare_iq2_bn) DO(set, iq4_nl_4_4) \
    DO(set, q4_0_r4) DO(set, q8_0_r4) DO(set, iq4_xs_r4)
#define DEQUANT_DECODERS(DO, set) \
    /* reference_numbers.c, kernels_numbers.c */ \
    DO(set, f32) DO(set, f16) DO(set, bf16) DO(set, f64) DO(set, i8) DO(set, i16) DO(set, i32) \
    DO(set, i64) \
    /* kernels_q.c */ \
    DO(set, q1_0) DO(set, q2_0) DO(set, q4_0) DO(set, q4_1) DO(set, q5_0) DO(set, q5_1) \
    DO(set, q8_0) DO(set, q8_1) DO(set, tq1_0) DO(set, tq2_0) DO(set, mxfp4) DO(set, nvfp4) \
    DO(set, q1_0_g32) DO(set, pq2_0) DO(set, ptq1_0) DO(set, row_iq2_tn) \
    /* kernels_k.c */ \
    DO(set, q2_k) DO(set, q3_k) DO(set, q4_k) DO(set, q5_k) DO(set, q6_k) DO(set, q8_k) \
    /* kernels_iq.c */ \
    DO(set, iq1_s) DO(set, iq1_m) DO(set, iq2_xxs) DO(set, iq2_xs) DO(set, iq2_s) \
    DO(set, iq3_xxs) DO(set, iq3_s) DO(set, iq4_nl) DO(set, iq4_xs) \
    /* kernels_ik_k.c */ \
    DO(set, iq2_k) DO(set, iq3_k) DO(set, iq4_k) DO(set, iq5_k) DO(set, iq6_k) DO(set, iq2_ks) \
    DO(set, iq3_ks) DO(set, iq4_kss) DO(set, iq5_ks) DO(set, iq2_kl) DO(set, old_iq2_k) \
    DO(set, iq4_ks) \
    /* kernels_ik_q.c */ \
    DO(set, i2_s) DO(set, iq1_bn) DO(set, iq2_bn) DO(set, q6_0) DO(set, q8_kv) \
    /* kernels_ik_kt.c */ \
    DO(set, iq1_kt) DO(set, iq2_kt) DO(set, iq3_kt) DO(set, iq4_kt) \
    DEQUANT_CONVERTED(DO, set) \
    /* kernels_ik_rows.c */ \
    DO(set, q5_0_r4) DO(set, q6_0_r4) DO(set, bf16_r16) DO(set, iq1_s_r4) DO(set, iq1_m_r4) \
    DO(set, iq2_bn_r4) DO(set, iq2_k_r4) DO(set, iq3_k_r4) DO(set, iq4_k_r4) DO(set, iq5_k_r4) \
    DO(set, iq5_ks_r4) DO(set, q8_kv_r8) DO(set, iq4_nl_r4) DO(set, iq4_ks_r4) \
    /* kernels_old.c */ \
    DO(set, era0_q4_0) DO(set, era0_q4_1) DO(set, era0_q4_2) DO(set, era0_q4_3) \
    DO(set, era0_q5_0) DO(set, era0_q5_1) DO(set, era1_q4_0) DO(set, era1_q4_1) \
    DO(set, old_q8_0)
#define DEQUANT_ENCODERS(DO, set) \
    /* reference_numbers.c, kernels_numbers.c */ \
    DO(set, to_f16) DO(set, to_bf16) \
    /* reference_numbers.c, kernels_encode.c */ \
    DO(set, to_q8_0) DO(set, to_q4_0)
#define DEQUANT_DOTS(DO, set) \
    /* reference_numbers.c, kernels_dot.c */ \
    DO(set, dot_f32) DO(set, dot_f16) DO(set, dot_bf16)
#define DEQUANT_CONVERTERS(DO, set) \
    DEQUANT_CONVERTED(DO, set) \
    /* kernels_rows.c */ \
    DO(set, q5_0_r4) DO(set, iq4_nl_r4) DO(set, bf16_r16) DO(set, q1_0_g32) DO(set, pq2_0) \
    DO(set, ptq1_0)

/* Only in set scalar: decode_forks.c. */
#define DEQUANT_REFERENCE_DECODERS(DO, set) \
    DO(set, tq3_0) DO(set, old_iq2_kt) DO(set, old_iq3_kt) DO(set, old_iq4_kt)

/* In vector sets. */
#define DEQUANT_UNPACKERS(DO, set) \
    /* kernels_unpack_k.c */ \
    DO(set, q4_k) DO(set, q5_k) DO(set, q6_k) \
    /* kernels_unpack_q.c */ \
    DO(set, q4_0) DO(set, q4_1) DO(set, q5_0) DO(set, q5_1) DO(set, q8_0) DO(set, iq4_nl) \
    DO(set, iq4_xs) \
    /* kernels_unpack_low_k.c */ \
    DO(set, q2_k) DO(set, q3_k) \
    /* kernels_unpack_ternary.c */ \
    DO(set, q1_0) DO(set, q2_0) DO(set, tq1_0) DO(set, tq2_0) \
    /* kernels_unpack_fp4.c */ \
    DO(set, mxfp4) DO(set, nvfp4) \
    /* kernels_unpack_iq.c */ \
    DO(set, iq1_s) DO(set, iq1_m) DO(set, iq2_xxs) DO(set, iq2_xs) DO(set, iq2_s) \
    DO(set, iq3_xxs) DO(set, iq3_s)
/* clang-format on */

#define DEQUANT_DECLARE_DECODER(set, name)   dequant_decode_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_ENCODER(set, name)   dequant_encode_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_DOT(set, name)       dequant_dot_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_CONVERTER(set, name) dequant_convert_fn dequant_##set##_convert_##name;
#define DEQUANT_DECLARE_UNPACKER(set, name)                                                        \
    dequant_unpack_fn dequant_##set##_unpack_##name;                                               \
    dequant_multiply_column_fn dequant_##set##_multiply_##name;
#define DEQUANT_DECLARE_SET(set, unused)                                                           \
    DEQUANT_DECODERS(DEQUANT_DECLARE_DECODER, set)                                                 \
    DEQUANT_CONVERTERS(DEQUANT_DECLARE_CONVERTER, set)                                             \
    DEQUANT_ENCODERS(DEQUANT_DECLARE_ENCODER, set)                                                 \
    DEQUANT_DOTS(DEQUANT_DECLARE_DOT, set)
/* The functions to quantize and multiply serve all types: kernels_quantize.c, kernels_multiply.c */
#define DEQUANT_DECLARE_PRODUCTS(set, unused)                                                      \
    DEQUANT_UNPACKERS(DEQUANT_DECLARE_UNPACKER, set)                                               \
    dequant_quantize_fn dequant_##set##_quantize;                                                  \
    dequant_multiply_fn dequant_##set##_multiply;

DEQUANT_DECLARE_SET(scalar, )
DEQUANT_REFERENCE_DECODERS(DEQUANT_DECLARE_DECODER, scalar)
DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_SET, )
DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_PRODUCTS, )

/*
 * A block of activations is quantized to zeros if its greatest magnitude is less than this: 1 / dx
 * might not be finite.
 */
#define DEQUANT_LEAST_MAGNITUDE 1e-30F

/* scale_limits.c: `has_nan_scale` of types. */
bool dequant_mxfp4_has_nan_scale(const void *block, uint32_t index);
bool dequant_mxfp4_r8_has_nan_scale(const void *block, uint32_t index);
bool dequant_nvfp4_has_nan_scale(const void *block, uint32_t index);

/*
 * Twice the values of E2M1 (OCP Microscaling Formats 1.0); minus zero is a plain zero, as in ggml.
 */
extern const int8_t dequant_doubled_e2m1[16];

/* scale_limits.c: `is_scale_at_limit` of types. */
bool dequant_f16_at_limit(const struct dequant_type *type, const void *block);
bool dequant_iq1_m_at_limit(const struct dequant_type *type, const void *block);
bool dequant_mxfp4_at_limit(const struct dequant_type *type, const void *block);
bool dequant_nvfp4_at_limit(const struct dequant_type *type, const void *block);

/* The f32 header of the row. */
static inline float dequant_f32_row_scale(struct dequant_row row)
{
    float d;

    memcpy(&d, (const uint8_t *)row.headers + row.index * sizeof d, sizeof d);
    return d;
}

/* The f16 header of the row, as a float. */
static inline float dequant_f16_row_scale(struct dequant_row row)
{
    uint16_t d;

    memcpy(&d, (const uint8_t *)row.headers + row.index * sizeof d, sizeof d);
    return dequant_f16_to_f32(d);
}
