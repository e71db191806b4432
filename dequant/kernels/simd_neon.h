/* The functions of simd.h for NEON; simd_x86.h describes each function. */
#pragma once

#include "dequant/kernels/float_vectors.h"

#include <string.h>

typedef uint8x16_t simd_bytes;
typedef uint32x4_t simd_words;

/* ---- 16 bytes ---- */

INLINE simd_bytes simd_shift_right(simd_bytes v, int n)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)-n));
}

INLINE simd_bytes simd_shift_left(simd_bytes v, int n)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)n));
}

INLINE simd_bytes simd_at_least(simd_bytes v, int least)
{
    return vcgeq_u8(v, vdupq_n_u8((uint8_t)least));
}

INLINE simd_bytes simd_look_up(simd_bytes table, simd_bytes indices)
{
    return vqtbl1q_u8(table, indices);
}

INLINE simd_bytes simd_look_up_long(const int8_t *table, size_t n, simd_bytes indices)
{
    const uint8_t *bytes = (const uint8_t *)table;
    simd_bytes values = simd_look_up(vld1q_u8(bytes), indices);

    for (size_t i = 1; i < n; i++) {
        indices -= 16;
        values = vqtbx1q_u8(values, vld1q_u8(bytes + 16 * i), indices);
    }
    return values;
}

INLINE simd_bytes simd_mask(uint16_t bits)
{
    const simd_bytes places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const simd_bytes spread =
        vcombine_u8(vdup_n_u8((uint8_t)(bits & 255)), vdup_n_u8((uint8_t)(bits >> 8)));

    return vtstq_u8(spread, places);
}

INLINE float simd_f16(uint16_t half)
{
    __fp16 value;

    memcpy(&value, &half, sizeof value);
    return (float)value;
}

INLINE uint16_t simd_to_f16(float value)
{
    const __fp16 half = (__fp16)value;
    uint16_t bits;

    memcpy(&bits, &half, sizeof bits);
    return bits;
}

/* ---- Parts of 16 lanes ---- */

INLINE int_vector part_of_signed(simd_bytes v, size_t i)
{
    const int8x16_t bytes = vreinterpretq_s8_u8(v);
    const int16x8_t pairs = i < 2 ? vmovl_s8(vget_low_s8(bytes)) : vmovl_high_s8(bytes);

    return (int_vector)(i % 2 == 0 ? vmovl_s16(vget_low_s16(pairs)) : vmovl_high_s16(pairs));
}

INLINE simd_words part_of_unsigned(simd_bytes v, size_t i)
{
    const uint16x8_t pairs = i < 2 ? vmovl_u8(vget_low_u8(v)) : vmovl_high_u8(v);

    return i % 2 == 0 ? vmovl_u16(vget_low_u16(pairs)) : vmovl_high_u16(pairs);
}

INLINE simd_words part_repeat(simd_bytes v)
{
    return vreinterpretq_u32_u8(v);
}

INLINE simd_words part_look_up(simd_words table, simd_words indices)
{
    return vreinterpretq_u32_u8(
        vqtbl1q_u8(vreinterpretq_u8_u32(table), vreinterpretq_u8_u32(indices)));
}

INLINE simd_words part_zip_low_4(simd_words a, simd_words b)
{
    return vzip1q_u32(a, b);
}

INLINE simd_words part_zip_high_4(simd_words a, simd_words b)
{
    return vzip2q_u32(a, b);
}

INLINE simd_words part_zip_low_8(simd_words a, simd_words b)
{
    return (simd_words)vzip1q_u64((uint64x2_t)a, (uint64x2_t)b);
}

INLINE simd_words part_zip_high_8(simd_words a, simd_words b)
{
    return (simd_words)vzip2q_u64((uint64x2_t)a, (uint64x2_t)b);
}

INLINE simd_words part_gather(const uint8_t *rows, size_t row_bytes, size_t i)
{
    return vreinterpretq_u32_u8(vld1q_u8(rows + i * FLOAT_WIDTH * row_bytes));
}

INLINE simd_words part_sum_bytes(simd_words v)
{
    return vpaddlq_u16(vpaddlq_u8(vreinterpretq_u8_u32(v)));
}

INLINE int_vector part_abs(int_vector v)
{
    return (int_vector)vabsq_s32((int32x4_t)v);
}

INLINE int_vector part_max(int_vector a, int_vector b)
{
    return (int_vector)vmaxq_s32((int32x4_t)a, (int32x4_t)b);
}

INLINE float_vector part_copy_signs(float_vector magnitude, float_vector v)
{
    return (float_vector)vbslq_f32(vdupq_n_u32(0x80000000), (float32x4_t)v, (float32x4_t)magnitude);
}

INLINE int_vector part_round(float_vector v)
{
    return (int_vector)vcvtnq_s32_f32((float32x4_t)v);
}

INLINE int_vector part_load_shorts(const void *from)
{
    return (int_vector)vmovl_s16(vreinterpret_s16_u8(vld1_u8(from)));
}

INLINE void part_store_shorts(void *to, simd_words v)
{
    vst1_u8(to, vreinterpret_u8_u16(vmovn_u32(v)));
}

INLINE float_vector part_load_f16(const void *from)
{
    return (float_vector)vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(from)));
}

INLINE void part_store_f16(void *to, float_vector v)
{
    vst1_u8(to, vreinterpret_u8_f16(vcvt_f16_f32((float32x4_t)v)));
}

INLINE float_vector part_of_f16(simd_words v)
{
    return (float_vector)vcvt_f32_f16(vreinterpret_f16_u16(vmovn_u32(v)));
}

/* One by one: through doubles they would be rounded twice. */
INLINE float_vector part_load_i64(const char *from)
{
    float_vector out;

    for (size_t i = 0; i < FLOAT_WIDTH; i++) {
        int64_t number;

        memcpy(&number, from + i * sizeof number, sizeof number);
        out[i] = (float)number;
    }
    return out;
}

INLINE float_vector part_load_f64(const char *from)
{
    const uint8_t *bytes = (const uint8_t *)from;
    const float64x2_t low = vreinterpretq_f64_u8(vld1q_u8(bytes));
    const float64x2_t high = vreinterpretq_f64_u8(vld1q_u8(bytes + 16));

    return (float_vector)vcvt_high_f32_f64(vcvt_f32_f64(low), high);
}

INLINE unsigned part_equal_mask(int_vector a, int_vector b)
{
    const uint32x4_t places = {1, 2, 4, 8};

    return vaddvq_u32((uint32x4_t)(a == b) & places);
}

INLINE simd_bytes simd_pack(const int_vector v[FLOAT_PARTS])
{
    const int16x8_t low = vcombine_s16(vmovn_s32((int32x4_t)v[0]), vmovn_s32((int32x4_t)v[1]));
    const int16x8_t high = vcombine_s16(vmovn_s32((int32x4_t)v[2]), vmovn_s32((int32x4_t)v[3]));

    return vreinterpretq_u8_s8(vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}
