/*
 * Conversions between float and the small number formats that blocks use for scales and elements.
 *
 * They use integers and exact arithmetic only, so they give the same bits on every CPU.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline float dequant_float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t dequant_bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/*
 * IEEE 754 half precision, exact. A NaN keeps its sign and payload and becomes quiet, as with the
 * F16C instructions.
 */
static inline float dequant_f16_to_f32(uint16_t half)
{
    const uint32_t rebias = (uint32_t)(127 - 15) << 23;
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t exponent = half & 0x7c00;
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13; /* the exponent still with half's bias */

    /* Compute all three cases and pick one: compilers vectorise that. */
    uint32_t normal = magnitude + rebias;
    uint32_t quiet = half & 0x03ff ? 0x00400000 : 0;
    uint32_t inf_or_nan = (normal + rebias) | quiet;

    /* Read as a normal number with exponent -14, a subnormal is 2^-14 too large. */
    float above = dequant_float_of_bits(normal + (1U << 23));
    uint32_t subnormal = dequant_bits_of_float(above - 0x1p-14F);

    uint32_t finite = exponent == 0 ? subnormal : normal;

    return dequant_float_of_bits(sign | (exponent == 0x7c00 ? inf_or_nan : finite));
}

/* To nearest, ties to even. A NaN keeps its sign and the upper part of its payload, quiet. */
static inline uint16_t dequant_f32_to_f16(float value)
{
    uint32_t bits = dequant_bits_of_float(value);
    uint32_t sign = (bits >> 16) & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t half;

    if (magnitude > 0x7f800000) {
        half = 0x7e00 | ((magnitude >> 13) & 0x03ff);
    } else if (magnitude >= 0x47800000) { /* 2^16 */
        half = 0x7c00;
    } else if (magnitude < 0x38800000) { /* 2^-14: adding 0.5 rounds to multiples of 2^-24 */
        half = dequant_bits_of_float(dequant_float_of_bits(magnitude) + 0.5F) - 0x3f000000;
    } else {
        /* Add half a unit of the last kept bit, or one less if that bit is 0: ties go to even. */
        magnitude += 0x0fff + ((magnitude >> 13) & 1);
        half = (magnitude - ((uint32_t)(127 - 15) << 23)) >> 13; /* carries up to infinity */
    }
    return (uint16_t)(sign | half);
}

/* To nearest, ties to even. A NaN keeps its sign and the upper part of its payload, quiet. */
static inline uint16_t dequant_f32_to_bf16(float value)
{
    uint32_t bits = dequant_bits_of_float(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x0040);
    return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

/* Return 1 / scale, the factor that quantizes a block's elements; 0 if it is not finite. */
static inline float dequant_inverse_scale(float scale)
{
    const float inverse = 1 / scale;

    return (dequant_bits_of_float(inverse) & 0x7f800000) == 0x7f800000 ? 0 : inverse;
}

/* The upper half of a float; every NaN stays as it is. */
static inline float dequant_bf16_to_f32(uint16_t bits)
{
    return dequant_float_of_bits((uint32_t)bits << 16);
}

/*
 * Half of an E8M0 scale (OCP Microscaling Formats 1.0): 2^(e - 128). Half, because
 * dequant_doubled_e2m1 holds doubled values. As in ggml, e = 255 is a number, not the NaN of the
 * specification.
 */
static inline float dequant_half_e8m0_to_f32(uint8_t e)
{
    if (e < 2)
        return dequant_float_of_bits(0x00200000U << e); /* subnormal: 2^-128 or 2^-127 */
    return dequant_float_of_bits((uint32_t)(e - 1) << 23);
}

/*
 * Half of a UE4M3 scale: exponent 4 bits with bias 7, fraction 3 bits, no infinity. As in ggml 0x7f
 * (the NaN of E4M3) is zero, and the unused top bit is ignored otherwise.
 */
static inline float dequant_half_ue4m3_to_f32(uint8_t bits)
{
    uint32_t exponent = (bits >> 3) & 15;
    uint32_t fraction = bits & 7;

    if (bits == 0x7f)
        return 0.0F;
    if (exponent == 0)
        return (float)fraction * 0x1p-10F;
    return dequant_float_of_bits(((exponent + 127 - 7 - 1) << 23) | (fraction << 20));
}
