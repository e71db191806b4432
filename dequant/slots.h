/*
 * The functions that fill the slots of the type table. dequant_SET_NAME is a set's function:
 * dequant_scalar_q4_0 is the reference and dequant_avx2_q4_0 a kernel. For the contracts see
 * dequant_decode_fn, dequant_encode_fn and dequant_dot_fn.
 *
 * Bit-exact means that the order of the float operations is part of the format: d * scale is
 * rounded before it is multiplied by q. Anything that is exact (integers, signs, conversions of
 * integers below 2^24) may be done in any order.
 */
#ifndef GGUFS_DEQUANT_SLOTS_H
#define GGUFS_DEQUANT_SLOTS_H

#include "dequant/forms.h"
#include "dequant/types.h"

/*
 * Defines the reference decoder of a type as a loop over the static function TYPE_block, which
 * decodes one struct dequant_LAYOUT to `elements` floats.
 */
#define DEQUANT_DEFINE_DECODER_OF(type, layout, elements)                                          \
    void dequant_scalar_##type(const void *restrict blocks, float *restrict out, size_t n_blocks,  \
                               struct dequant_row row)                                             \
    {                                                                                              \
        const struct dequant_##layout *block = blocks;                                             \
                                                                                                   \
        (void)row;                                                                                 \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_block(&block[i], out + i * (elements));                                         \
    }

/* For a type whose layout has the same name. */
#define DEQUANT_DEFINE_DECODER(type, elements) DEQUANT_DEFINE_DECODER_OF(type, type, elements)

/* The same for a type with row headers or interleaved rows: TYPE_block gets the row as well. */
#define DEQUANT_DEFINE_ROW_DECODER(type, elements)                                                 \
    void dequant_scalar_##type(const void *restrict blocks, float *restrict out, size_t n_blocks,  \
                               struct dequant_row row)                                             \
    {                                                                                              \
        const struct dequant_##type *block = blocks;                                               \
                                                                                                   \
        for (size_t i = 0; i < n_blocks; i++)                                                      \
            type##_block(&block[i], row, out + i * (elements));                                    \
    }

#define DEQUANT_DECLARE_DECODER(set, name)  dequant_decode_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_ENCODER(set, name)  dequant_encode_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_DOT(set, name)      dequant_dot_fn dequant_##set##_##name;
#define DEQUANT_DECLARE_UNPACKER(set, name) dequant_unpack_fn dequant_##set##_unpack_##name;
#define DEQUANT_DECLARE_COLUMN(set, name)                                                          \
    dequant_multiply_column_fn dequant_##set##_multiply_##name;
#define DEQUANT_DECLARE_PRODUCT(set, unused)                                                       \
    dequant_quantize_fn dequant_##set##_quantize;                                                  \
    dequant_multiply_fn dequant_##set##_multiply;

#define DECODER(name)                                                                              \
    DEQUANT_DECLARE_DECODER(scalar, name) DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_DECODER, name)
#define ENCODER(name)                                                                              \
    DEQUANT_DECLARE_ENCODER(scalar, name) DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_ENCODER, name)
#define DOT(name) DEQUANT_DECLARE_DOT(scalar, name) DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_DOT, name)
#define UNPACKER(name)                                                                             \
    DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_UNPACKER, name)                                            \
    DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_COLUMN, name)

/* decode_numbers.c, kernels_numbers.c */
DECODER(f32)
DECODER(f16)
DECODER(bf16)
DECODER(f64)
DECODER(i8)
DECODER(i16)
DECODER(i32)
DECODER(i64)

/* decode_q.c, kernels_q.c */
DECODER(q1_0)
DECODER(q2_0)
DECODER(q4_0)
DECODER(q4_1)
DECODER(q5_0)
DECODER(q5_1)
DECODER(q8_0)
DECODER(q8_1)

/* decode_k.c, kernels_k.c */
DECODER(q2_k)
DECODER(q3_k)
DECODER(q4_k)
DECODER(q5_k)
DECODER(q6_k)
DECODER(q8_k)

/* decode_iq.c, kernels_iq.c */
DECODER(iq1_s)
DECODER(iq1_m)
DECODER(iq2_xxs)
DECODER(iq2_xs)
DECODER(iq2_s)
DECODER(iq3_xxs)
DECODER(iq3_s)
DECODER(iq4_nl)
DECODER(iq4_xs)

/* decode_ternary.c, kernels_q.c */
DECODER(tq1_0)
DECODER(tq2_0)

/* decode_fp4.c, kernels_q.c */
DECODER(mxfp4)
DECODER(nvfp4)
bool dequant_mxfp4_has_nan_scale(const void *block, uint32_t index);
bool dequant_mxfp4_r8_has_nan_scale(const void *block, uint32_t index);
bool dequant_nvfp4_has_nan_scale(const void *block, uint32_t index);

/* decode_ik.c, kernels_ik.c */
DECODER(iq4_ks)
DECODER(iq4_nl_r4)
DECODER(iq4_ks_r4)

/* decode_ik_k.c, kernels_ik_k.c */
DECODER(iq2_k)
DECODER(iq3_k)
DECODER(iq4_k)
DECODER(iq5_k)
DECODER(iq6_k)
DECODER(iq2_ks)
DECODER(iq3_ks)
DECODER(iq4_kss)
DECODER(iq5_ks)
DECODER(iq2_kl)

/* decode_ik_q.c, kernels_ik_q.c */
DECODER(i2_s)
DECODER(iq1_bn)
DECODER(iq2_bn)
DECODER(q6_0)
DECODER(q8_kv)

/* decode_ik_kt.c, kernels_ik_kt.c */
DECODER(iq1_kt)
DECODER(iq2_kt)
DECODER(iq3_kt)
DECODER(iq4_kt)

/* decode_ik_rows.c, kernels_ik_rows.c */
DECODER(q4_0_4_4)
DECODER(q4_0_4_8)
DECODER(q4_0_8_8)
DECODER(q4_0_r8)
DECODER(q5_0_r4)
DECODER(q8_0_r8)
DECODER(q2_k_r4)
DECODER(q3_k_r4)
DECODER(q4_k_r4)
DECODER(q5_k_r4)
DECODER(q6_k_r4)
DECODER(iq2_xxs_r4)
DECODER(iq2_xs_r4)
DECODER(iq3_xxs_r4)
DECODER(iq1_s_r4)
DECODER(iq3_s_r4)
DECODER(iq2_s_r4)
DECODER(iq4_xs_r8)
DECODER(iq1_m_r4)
DECODER(bf16_r16)
DECODER(mxfp4_r8)
DECODER(q8_k_r16)
DECODER(q8_k_r8)
DECODER(q6_0_r4)
DECODER(iq2_bn_r4)
DECODER(iq2_k_r4)
DECODER(iq3_k_r4)
DECODER(iq4_k_r4)
DECODER(iq5_k_r4)
DECODER(iq5_ks_r4)
DECODER(q8_kv_r8)

/* deinterleave.c */
#define DEINTERLEAVER(name)                                                                        \
    void dequant_deinterleave_##name(const void *restrict blocks, void *restrict out,              \
                                     size_t n_blocks, uint32_t index);
DEINTERLEAVER(q4_0_4_4)
DEINTERLEAVER(q4_0_4_8)
DEINTERLEAVER(q4_0_8_8)
DEINTERLEAVER(q4_0_r8)
DEINTERLEAVER(q5_0_r4)
DEINTERLEAVER(q8_0_r8)
DEINTERLEAVER(q2_k_r4)
DEINTERLEAVER(q3_k_r4)
DEINTERLEAVER(q4_k_r4)
DEINTERLEAVER(q5_k_r4)
DEINTERLEAVER(q6_k_r4)
DEINTERLEAVER(iq2_xxs_r4)
DEINTERLEAVER(iq2_xs_r4)
DEINTERLEAVER(iq3_xxs_r4)
DEINTERLEAVER(iq4_nl_r4)
DEINTERLEAVER(iq3_s_r4)
DEINTERLEAVER(iq2_s_r4)
DEINTERLEAVER(iq4_xs_r8)
DEINTERLEAVER(bf16_r16)
DEINTERLEAVER(mxfp4_r8)
DEINTERLEAVER(q8_k_r16)
DEINTERLEAVER(q8_k_r8)

/* decode_forks.c */
DEINTERLEAVER(q1_0_g32)
DEINTERLEAVER(pq2_0)
DEINTERLEAVER(ptq1_0)
DEINTERLEAVER(iq2_tn)
DEINTERLEAVER(bare_iq1_bn)
DEINTERLEAVER(bare_iq2_bn)
DEINTERLEAVER(iq4_nl_4_4)
DEINTERLEAVER(q4_0_r4)
DEINTERLEAVER(q8_0_r4)
DEINTERLEAVER(iq4_xs_r4)
#undef DEINTERLEAVER

/* decode_forks.c; the first three in kernels_q.c as well */
DECODER(q1_0_g32)
DECODER(pq2_0)
DECODER(ptq1_0)
#define DEQUANT_REFERENCE_ONLY(name) DEQUANT_DECLARE_DECODER(scalar, name)
DEQUANT_REFERENCE_ONLY(tq3_0)
DEQUANT_REFERENCE_ONLY(iq2_tn)
DEQUANT_REFERENCE_ONLY(row_iq2_tn)
DEQUANT_REFERENCE_ONLY(bare_iq1_bn)
DEQUANT_REFERENCE_ONLY(bare_iq2_bn)
DEQUANT_REFERENCE_ONLY(iq4_nl_4_4)
DEQUANT_REFERENCE_ONLY(q4_0_r4)
DEQUANT_REFERENCE_ONLY(q8_0_r4)
DEQUANT_REFERENCE_ONLY(iq4_xs_r4)

/* decode_ik_k.c, decode_ik_kt.c: former layouts of ik_llama.cpp's types */
DEQUANT_REFERENCE_ONLY(old_iq2_k)
DEQUANT_REFERENCE_ONLY(old_iq2_kt)
DEQUANT_REFERENCE_ONLY(old_iq3_kt)
DEQUANT_REFERENCE_ONLY(old_iq4_kt)
#undef DEQUANT_REFERENCE_ONLY

/* decode_old.c, kernels_old.c */
DECODER(era0_q4_0)
DECODER(era0_q4_1)
DECODER(era0_q4_2)
DECODER(era0_q4_3)
DECODER(era0_q5_0)
DECODER(era0_q5_1)
DECODER(era1_q4_0)
DECODER(era1_q4_1)
DECODER(old_q8_0)

/* encode.c, kernels_numbers.c */
ENCODER(to_f16)
ENCODER(to_bf16)

/* encode.c, kernels_encode.c */
ENCODER(to_q8_0)
ENCODER(to_q4_0)

/* dot.c, kernels_dot.c */
DOT(dot_f32)
DOT(dot_f16)
DOT(dot_bf16)

/*
 * A block of activations is quantized to zeros if its greatest magnitude is less than this: 1 / dx
 * might not be finite.
 */
#define DEQUANT_LEAST_MAGNITUDE 1e-30F

/* kernels_multiply.c, kernels_quantize.c: the same functions serve all types */
DEQUANT_VECTOR_SETS(DEQUANT_DECLARE_PRODUCT, )

/* kernels_unpack_k.c */
UNPACKER(q4_k)
UNPACKER(q5_k)
UNPACKER(q6_k)

/* kernels_unpack_q.c */
UNPACKER(q4_0)
UNPACKER(q4_1)
UNPACKER(q5_0)
UNPACKER(q5_1)
UNPACKER(q8_0)

/* kernels_unpack_iq4.c */
UNPACKER(iq4_nl)
UNPACKER(iq4_xs)

/* kernels_unpack_low_k.c */
UNPACKER(q2_k)
UNPACKER(q3_k)

/* kernels_unpack_ternary.c */
UNPACKER(q1_0)
UNPACKER(q2_0)
UNPACKER(tq1_0)
UNPACKER(tq2_0)

/* kernels_unpack_fp4.c */
UNPACKER(mxfp4)
UNPACKER(nvfp4)

/* kernels_unpack_iq.c */
UNPACKER(iq1_s)
UNPACKER(iq1_m)
UNPACKER(iq2_xxs)
UNPACKER(iq2_xs)
UNPACKER(iq2_s)
UNPACKER(iq3_xxs)
UNPACKER(iq3_s)

#undef UNPACKER
#undef DECODER
#undef ENCODER
#undef DOT

/*
 * Twice the values of E2M1 (OCP Microscaling Formats 1.0); minus zero is a plain zero, as in ggml.
 */
extern const int8_t dequant_doubled_e2m1[16];

/* scale_limits.c: `is_scale_at_limit` of types. */
bool dequant_f16_at_limit(const struct dequant_type *type, const void *block);
bool dequant_iq1_m_at_limit(const struct dequant_type *type, const void *block);
bool dequant_mxfp4_at_limit(const struct dequant_type *type, const void *block);
bool dequant_nvfp4_at_limit(const struct dequant_type *type, const void *block);

#endif
