/* The vectors of simd.h for NEON; simd_x86.h documents each function. */
#ifndef GGUFS_DEQUANT_KERNELS_SIMD_NEON_H
#define GGUFS_DEQUANT_KERNELS_SIMD_NEON_H

#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint8x16_t simd_bytes;

static inline simd_bytes simd_load(const void *from)
{
    return vld1q_u8(from);
}

static inline simd_bytes simd_load_8(const void *from)
{
    return vcombine_u8(vld1_u8(from), vdup_n_u8(0));
}

static inline void simd_store_bytes(void *to, simd_bytes v)
{
    vst1q_u8(to, v);
}

static inline simd_bytes simd_all(int byte)
{
    return vdupq_n_u8((uint8_t)byte);
}

/* Two or four numbers, the first in the lowest bytes. */
static inline simd_bytes simd_two(uint64_t low, uint64_t high)
{
    return vreinterpretq_u8_u64(vcombine_u64(vcreate_u64(low), vcreate_u64(high)));
}

static inline simd_bytes simd_four(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return simd_two(a | (uint64_t)b << 32, c | (uint64_t)d << 32);
}

static inline simd_bytes simd_and(simd_bytes a, simd_bytes b)
{
    return vandq_u8(a, b);
}

static inline simd_bytes simd_or(simd_bytes a, simd_bytes b)
{
    return vorrq_u8(a, b);
}

static inline simd_bytes simd_xor(simd_bytes a, simd_bytes b)
{
    return veorq_u8(a, b);
}

static inline simd_bytes simd_add(simd_bytes a, simd_bytes b)
{
    return vaddq_u8(a, b);
}

static inline simd_bytes simd_sub(simd_bytes a, simd_bytes b)
{
    return vsubq_u8(a, b);
}

static inline simd_bytes simd_shift_right(simd_bytes v, int n)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)-n));
}

static inline simd_bytes simd_shift_left(simd_bytes v, int n)
{
    return vshlq_u8(v, vdupq_n_s8((int8_t)n));
}

static inline simd_bytes simd_at_least(simd_bytes v, int least)
{
    return vcgeq_u8(v, simd_all(least));
}

static inline simd_bytes simd_look_up(simd_bytes table, simd_bytes indices)
{
    return vqtbl1q_u8(table, indices);
}

static inline simd_bytes simd_look_up_long(const int8_t *table, size_t n, simd_bytes indices)
{
    simd_bytes values = simd_look_up(simd_load(table), indices);

    for (size_t i = 1; i < n; i++) {
        indices = simd_sub(indices, simd_all(16));
        values = vqtbx1q_u8(values, simd_load(table + 16 * i), indices);
    }
    return values;
}

/* -1 where a bit is set, else 0. */
static inline simd_bytes simd_mask(uint16_t bits)
{
    const simd_bytes places = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const simd_bytes spread =
        vcombine_u8(vdup_n_u8((uint8_t)(bits & 255)), vdup_n_u8((uint8_t)(bits >> 8)));

    return vtstq_u8(spread, places);
}

static inline simd_bytes simd_keep_where(simd_bytes v, uint16_t bits)
{
    return simd_and(v, simd_mask(bits));
}

static inline simd_bytes simd_negate_where(simd_bytes v, uint16_t bits)
{
    const simd_bytes mask = simd_mask(bits);

    return simd_sub(simd_xor(v, mask), mask);
}

static inline simd_bytes simd_zip_low_1(simd_bytes a, simd_bytes b)
{
    return vzip1q_u8(a, b);
}

static inline simd_bytes simd_zip_high_1(simd_bytes a, simd_bytes b)
{
    return vzip2q_u8(a, b);
}

static inline simd_bytes simd_zip_low_2(simd_bytes a, simd_bytes b)
{
    return vreinterpretq_u8_u16(vzip1q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}

static inline simd_bytes simd_zip_high_2(simd_bytes a, simd_bytes b)
{
    return vreinterpretq_u8_u16(vzip2q_u16(vreinterpretq_u16_u8(a), vreinterpretq_u16_u8(b)));
}

static inline simd_bytes simd_zip_low_4(simd_bytes a, simd_bytes b)
{
    return vreinterpretq_u8_u32(vzip1q_u32(vreinterpretq_u32_u8(a), vreinterpretq_u32_u8(b)));
}

static inline simd_bytes simd_zip_low_8(simd_bytes a, simd_bytes b)
{
    return vreinterpretq_u8_u64(vzip1q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

static inline simd_bytes simd_zip_high_8(simd_bytes a, simd_bytes b)
{
    return vreinterpretq_u8_u64(vzip2q_u64(vreinterpretq_u64_u8(a), vreinterpretq_u64_u8(b)));
}

static inline float simd_f16(uint16_t half)
{
    __fp16 value;

    memcpy(&value, &half, sizeof value);
    return (float)value;
}

static inline uint16_t simd_to_f16(float value)
{
    const __fp16 half = (__fp16)value;
    uint16_t bits;

    memcpy(&bits, &half, sizeof bits);
    return bits;
}

/* ---- 16 floats ---- */

typedef struct {
    float32x4_t v[4];
} simd_floats;

static inline simd_floats simd_all_floats(float value)
{
    const float32x4_t all = vdupq_n_f32(value);

    return (simd_floats){{all, all, all, all}};
}

static inline simd_floats simd_halves(float low, float high)
{
    const float32x4_t all_low = vdupq_n_f32(low), all_high = vdupq_n_f32(high);

    return (simd_floats){{all_low, all_low, all_high, all_high}};
}

/* Eight numbers of 16 bits, the lower and the upper four. */
static inline float32x4_t simd_low_of_i16(int16x8_t v)
{
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(v)));
}

static inline float32x4_t simd_high_of_i16(int16x8_t v)
{
    return vcvtq_f32_s32(vmovl_high_s16(v));
}

static inline simd_floats simd_floats_of(simd_bytes bytes)
{
    const int8x16_t v = vreinterpretq_s8_u8(bytes);
    const int16x8_t low = vmovl_s8(vget_low_s8(v)), high = vmovl_high_s8(v);

    return (simd_floats){{simd_low_of_i16(low), simd_high_of_i16(low), simd_low_of_i16(high),
                          simd_high_of_i16(high)}};
}

static inline simd_floats simd_mul(simd_floats a, simd_floats b)
{
    return (simd_floats){{vmulq_f32(a.v[0], b.v[0]), vmulq_f32(a.v[1], b.v[1]),
                          vmulq_f32(a.v[2], b.v[2]), vmulq_f32(a.v[3], b.v[3])}};
}

static inline simd_floats simd_add_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){{vaddq_f32(a.v[0], b.v[0]), vaddq_f32(a.v[1], b.v[1]),
                          vaddq_f32(a.v[2], b.v[2]), vaddq_f32(a.v[3], b.v[3])}};
}

static inline simd_floats simd_sub_floats(simd_floats a, simd_floats b)
{
    return (simd_floats){{vsubq_f32(a.v[0], b.v[0]), vsubq_f32(a.v[1], b.v[1]),
                          vsubq_f32(a.v[2], b.v[2]), vsubq_f32(a.v[3], b.v[3])}};
}

static inline void simd_store(float *out, simd_floats floats)
{
    for (size_t i = 0; i < 4; i++)
        vst1q_f32(out + 4 * i, floats.v[i]);
}

/* The loads read bytes, because the numbers of a file may lie at any address. */
static inline simd_floats simd_load_floats(const void *from)
{
    const uint8_t *bytes = from;
    simd_floats floats;

    for (size_t i = 0; i < 4; i++)
        floats.v[i] = vreinterpretq_f32_u8(vld1q_u8(bytes + 16 * i));
    return floats;
}

static inline simd_floats simd_load_f16(const void *from)
{
    const uint8_t *bytes = from;
    const float16x8_t low = vreinterpretq_f16_u8(vld1q_u8(bytes));
    const float16x8_t high = vreinterpretq_f16_u8(vld1q_u8(bytes + 16));

    return (simd_floats){{vcvt_f32_f16(vget_low_f16(low)), vcvt_high_f32_f16(low),
                          vcvt_f32_f16(vget_low_f16(high)), vcvt_high_f32_f16(high)}};
}

static inline simd_floats simd_load_bf16(const void *from)
{
    const uint8_t *bytes = from;
    simd_floats floats;

    for (size_t i = 0; i < 2; i++) {
        const uint16x8_t v = vreinterpretq_u16_u8(vld1q_u8(bytes + 16 * i));

        floats.v[2 * i] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(v), 16));
        floats.v[2 * i + 1] = vreinterpretq_f32_u32(vshll_high_n_u16(v, 16));
    }
    return floats;
}

static inline simd_floats simd_load_i16(const void *from)
{
    const uint8_t *bytes = from;
    const int16x8_t low = vreinterpretq_s16_u8(vld1q_u8(bytes));
    const int16x8_t high = vreinterpretq_s16_u8(vld1q_u8(bytes + 16));

    return (simd_floats){{simd_low_of_i16(low), simd_high_of_i16(low), simd_low_of_i16(high),
                          simd_high_of_i16(high)}};
}

static inline simd_floats simd_load_i32(const void *from)
{
    const uint8_t *bytes = from;
    simd_floats floats;

    for (size_t i = 0; i < 4; i++)
        floats.v[i] = vcvtq_f32_s32(vreinterpretq_s32_u8(vld1q_u8(bytes + 16 * i)));
    return floats;
}

/* One by one: through doubles they would be rounded twice. */
static inline simd_floats simd_load_i64(const void *from)
{
    const uint8_t *bytes = from;
    float out[16];

    for (size_t i = 0; i < 16; i++) {
        int64_t number;

        memcpy(&number, bytes + i * sizeof number, sizeof number);
        out[i] = (float)number;
    }
    return simd_load_floats(out);
}

static inline simd_floats simd_load_f64(const void *from)
{
    const uint8_t *bytes = from;
    simd_floats floats;

    for (size_t i = 0; i < 4; i++) {
        const float64x2_t low = vreinterpretq_f64_u8(vld1q_u8(bytes + 32 * i));
        const float64x2_t high = vreinterpretq_f64_u8(vld1q_u8(bytes + 32 * i + 16));

        floats.v[i] = vcvt_high_f32_f64(vcvt_f32_f64(low), high);
    }
    return floats;
}

static inline void simd_store_f16(void *out, simd_floats floats)
{
    uint8_t *bytes = out;

    for (size_t i = 0; i < 2; i++) {
        const float16x4_t low = vcvt_f16_f32(floats.v[2 * i]);

        vst1q_u8(bytes + 16 * i, vreinterpretq_u8_f16(vcvt_high_f16_f32(low, floats.v[2 * i + 1])));
    }
}

/* Rounded, in the lower halves of 32 bits. */
static inline uint32x4_t simd_round_bf16(float32x4_t floats)
{
    const uint32x4_t bits = vreinterpretq_u32_f32(floats);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
    const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
    const uint32x4_t is_number = vceqq_f32(floats, floats);

    return vshrq_n_u32(vbslq_u32(is_number, rounded, quiet), 16);
}

static inline void simd_store_bf16(void *out, simd_floats floats)
{
    uint8_t *bytes = out;

    for (size_t i = 0; i < 2; i++) {
        const uint16x4_t low = vmovn_u32(simd_round_bf16(floats.v[2 * i]));
        const uint16x4_t high = vmovn_u32(simd_round_bf16(floats.v[2 * i + 1]));

        vst1q_u8(bytes + 16 * i, vreinterpretq_u8_u16(vcombine_u16(low, high)));
    }
}

#endif
