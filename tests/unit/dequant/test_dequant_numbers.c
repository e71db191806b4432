/* The number formats, each against an independent formula. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "dequant/iq_grids.h"
#include "dequant/small_floats.h"
#include "dequant/kernels.h"

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static const struct dequant_type *type_named(const char *name)
{
    for (size_t i = 0; i < dequant_type_count(); i++) {
        if (strcmp(dequant_type_at(i)->name, name) == 0)
            return dequant_type_at(i);
    }
    cr_assert_fail("no type %s", name);
    return NULL;
}

/* Return the bits of the float that equals a binary16 number. */
static uint32_t expected_f16(uint32_t half)
{
    uint32_t sign = (half >> 15) << 31;
    int exponent = (int)(half >> 10) & 31;
    int fraction = (int)(half & 1023);

    if (exponent == 31 && fraction != 0)
        return sign | 0x7fc00000 | (uint32_t)fraction << 13; /* quiet NaN with the same payload */
    if (exponent == 31)
        return sign | 0x7f800000;
    if (exponent == 0)
        return sign | bits_of((float)ldexp(fraction, -24));
    return sign | bits_of((float)ldexp(1024 + fraction, exponent - 25));
}

Test(dequant_numbers, every_f16)
{
    static uint16_t in[65536];
    static float out[65536];

    for (uint32_t h = 0; h < 65536; h++)
        in[h] = (uint16_t)h;
    dequant_decode(type_named("F16"), in, out, 65536);
    for (uint32_t h = 0; h < 65536; h++) {
        cr_assert_eq(bits_of(out[h]), expected_f16(h), "%#x decodes to %#x, expected %#x", h,
                     bits_of(out[h]), expected_f16(h));
        if (isnan(out[h]))
            cr_assert(bits_of(out[h]) & 0x00400000, "%#x decodes to a signalling NaN", h);
    }
}

Test(dequant_numbers, every_bf16)
{
    static uint16_t in[65536];
    static float out[65536];

    for (uint32_t h = 0; h < 65536; h++)
        in[h] = (uint16_t)h;
    dequant_decode(type_named("BF16"), in, out, 65536);
    for (uint32_t h = 0; h < 65536; h++)
        cr_assert_eq(bits_of(out[h]), h << 16, "%#x", h);
}

Test(dequant_numbers, f32_keeps_every_bit)
{
    const uint32_t in[] = {0,          0x80000000, 1,          0x807fffff, 0x7f800000,
                           0xff800000, 0x7f800001, 0xff812345, 0x7fc00001, 0x3f800000};
    float out[10];

    dequant_decode(type_named("F32"), in, out, 10);
    for (size_t i = 0; i < 10; i++)
        cr_assert_eq(bits_of(out[i]), in[i], "%#x decodes to %#x", in[i], bits_of(out[i]));
}

Test(dequant_numbers, f64_rounds_to_nearest)
{
    const double in[] = {0.0, -0.0, 0.1, 1e300, -1e300, 1e-60, 0x1.000001p0, INFINITY, 0x1p-149};
    const uint32_t expected[] = {0x00000000, 0x80000000, 0x3dcccccd, 0x7f800000, 0xff800000,
                                 0x00000000, 0x3f800000, 0x7f800000, 0x00000001};
    float out[9];

    dequant_decode(type_named("F64"), in, out, 9);
    for (size_t i = 0; i < 9; i++)
        cr_assert_eq(bits_of(out[i]), expected[i], "%g decodes to %#x", in[i], bits_of(out[i]));
}

Test(dequant_numbers, integers_round_to_nearest_even)
{
    const int8_t i8[] = {INT8_MIN, -1, INT8_MAX};
    const int16_t i16[] = {INT16_MIN, -1, INT16_MAX};
    const int32_t i32[] = {INT32_MIN, 16777217, 16777219};
    const int64_t i64[] = {INT64_MIN, INT64_MAX, 16777217};
    float out[3];

    dequant_decode(type_named("I8"), i8, out, 3);
    cr_assert(out[0] == -128.0F && out[1] == -1.0F && out[2] == 127.0F);
    dequant_decode(type_named("I16"), i16, out, 3);
    cr_assert(out[0] == -32768.0F && out[1] == -1.0F && out[2] == 32767.0F);
    dequant_decode(type_named("I32"), i32, out, 3);
    cr_assert(out[0] == -0x1p31F && out[1] == 16777216.0F && out[2] == 16777220.0F);
    dequant_decode(type_named("I64"), i64, out, 3);
    cr_assert(out[0] == -0x1p63F && out[1] == 0x1p63F && out[2] == 16777216.0F);
}

Test(dequant_numbers, every_e8m0)
{
    for (int e = 0; e < 256; e++)
        cr_assert_eq(bits_of(dequant_half_e8m0_to_f32((uint8_t)e)),
                     bits_of((float)ldexp(1.0, e - 128)), "%d", e);
}

Test(dequant_numbers, every_ue4m3)
{
    for (int bits = 0; bits < 256; bits++) {
        int exponent = (bits >> 3) & 15;
        int fraction = bits & 7;
        double expected = exponent == 0 ? ldexp(fraction, -9) : ldexp(8 + fraction, exponent - 10);

        if (bits == 0x7f)
            expected = 0.0;
        cr_assert_eq(bits_of(dequant_half_ue4m3_to_f32((uint8_t)bits)),
                     bits_of((float)(expected / 2)), "%#x", (unsigned)bits);
    }
}

/* A NaN or infinite scale must give NaN or infinite values, and must not trap. */
Test(dequant_numbers, nan_and_infinite_scales)
{
    uint8_t block[34] = {0x00, 0x7c}; /* Q8_0 with d = infinity */
    float out[32];

    block[2] = 1;
    block[3] = 0xff;
    dequant_decode(type_named("Q8_0"), block, out, 1);
    cr_assert_eq(bits_of(out[0]), 0x7f800000);
    cr_assert_eq(bits_of(out[1]), 0xff800000);
    cr_assert(isnan(out[2]));

    block[0] = 1; /* d = NaN */
    dequant_decode(type_named("Q8_0"), block, out, 1);
    for (size_t i = 0; i < 32; i++)
        cr_assert(isnan(out[i]));
}

/* FNV-1a. */
static uint64_t hash_of(const void *grid, size_t n_bytes)
{
    const uint8_t *bytes = grid;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

#define HASH(grid) hash_of(grid, sizeof(grid))

/* Hashes of the entries in the order of ggml's ggml-common.h. */
Test(dequant_numbers, grids_are_those_of_ggml)
{
    cr_assert_eq(HASH(dequant_iq1_grid), 0x6703ed863501ae2e);
    cr_assert_eq(HASH(dequant_iq2_xxs_grid), 0xbb4ee025b5ac6e8e);
    cr_assert_eq(HASH(dequant_iq2_xs_grid), 0xc9b1ee61e79909bd);
    cr_assert_eq(HASH(dequant_iq2_s_grid), 0x123edd38a3b62b90);
    cr_assert_eq(HASH(dequant_iq3_xxs_grid), 0xdfa5dc83d6a155d5);
    cr_assert_eq(HASH(dequant_iq3_s_grid), 0xfa37020c25b44829);
}

static bool is_at_limit(const char *name, const uint8_t *block)
{
    const struct dequant_type *type = type_named(name);

    return type->is_scale_at_limit(type, block);
}

Test(dequant_numbers, limits_of_scales)
{
    static const struct {
        uint16_t bits;
        bool is_limit;
    } halves[] = {{0x0000, false}, {0x0001, true}, {0x03ff, true},  {0x0400, false},
                  {0x7bfe, false}, {0x7bff, true}, {0x7c00, true},  {0x7e00, true},
                  {0x8000, false}, {0x8001, true}, {0xbc00, false}, {0xfbff, true}};
    uint8_t block[64] = {0};

    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        memcpy(block, &halves[i].bits, sizeof halves[i].bits);
        cr_expect_eq(is_at_limit("Q8_0", block), halves[i].is_limit, "f16 %x", halves[i].bits);
        memset(block, 0, sizeof block);
        for (size_t w = 0; w < 4; w++) /* the scale's bits are the highest of four words */
            block[48 + 2 * w + 1] = (uint8_t)(halves[i].bits >> 4 * w << 4);
        cr_expect_eq(is_at_limit("IQ1_M", block), halves[i].is_limit, "f16 %x", halves[i].bits);
        memset(block, 0, sizeof block);
    }
    for (unsigned e = 0; e < 256; e++) {
        block[0] = (uint8_t)e;
        cr_expect_eq(is_at_limit("MXFP4", block), e >= 254, "e8m0 %u", e);
        block[16] = 0x10;
        cr_expect_eq(is_at_limit("MXFP4", block), e >= 254 || e == 0, "e8m0 %u", e);
        block[16] = 0;
    }
    for (size_t s = 0; s < 4; s++) {
        memset(block, 0x38, 4); /* 1 */
        for (unsigned scale = 0; scale < 256; scale++) {
            const unsigned bits = scale & 0x7f;

            block[s] = (uint8_t)scale;
            cr_expect_eq(is_at_limit("NVFP4", block), bits > 125 || (bits > 0 && bits < 8),
                         "ue4m3 %u", scale);
        }
    }
}
