/* Encoders: the reference against its definition, the kernels against the reference. */
#include "dequant/blocks.h"
#include "dequant/kernels.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/check_kernels.h"
#include "tests/kernels/fenced.h"
#include "tests/unit/dequant/random_blocks.h"

#include <math.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define N_VALUES     65536u

/* The bits of floats, and what they are encoded to. */
static uint32_t values[N_VALUES];
static uint8_t good[N_VALUES * 2], got[N_VALUES * 2];

/* Return lower halves of floats: ties and their neighbours first, then random ones. */
static uint32_t lower_half(size_t round, uint64_t *state)
{
    static const uint32_t chosen[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff,
                                      0x8000, 0x8001, 0xefff, 0xf000, 0xffff};

    return round < COUNT(chosen) ? chosen[round] : (uint32_t)(next_random(state) & 0xffff);
}

static void set_value(size_t i, float value)
{
    memcpy(&values[i], &value, sizeof value);
}

/* Blocks of values between -most and most steps, in halves of a step or a bit more or less. */
static void make_ties(uint64_t *state, int most)
{
    float step = 1;

    for (size_t i = 0; i < N_VALUES; i++) {
        const uint64_t random = next_random(state);
        float value;

        if (i % DEQUANT_BLOCK == 0)
            step = random % 3 == 0 ? ldexpf(1, (int)(random >> 8 & 63) - 32)
                                   : (float)(1 + (random >> 8 & 0xffffff)) * 1e-9f;
        value = (float)((int)(random >> 40) % (4 * most + 1) - 2 * most) / 2 * step;
        if (random >> 38 & 1)
            value = nextafterf(value, random >> 39 & 1 ? INFINITY : 0);
        set_value(i, value);
    }
}

/* Random bits with an exponent for each block, from zero to infinity, and some NaNs. */
static void make_exponents(uint64_t *state)
{
    for (size_t i = 0; i < N_VALUES; i++) {
        const uint32_t of_block = (uint32_t)(i / DEQUANT_BLOCK * 255 / (N_VALUES / DEQUANT_BLOCK));
        const uint64_t random = next_random(state);
        const uint32_t below = (uint32_t)(random >> 40) % 8;
        const uint32_t exponent = of_block > below ? of_block - below : 0;

        values[i] = (uint32_t)random % 16 == 0 ? (uint32_t)random & 0x80000000
                                               : ((uint32_t)random & 0x807fffff) | exponent << 23;
    }
    values[77] = 0x7fc00001;
    values[1000] = 0xff800000;
}

static bool gives_the_same(const struct dequant_type *type, dequant_encode_fn *encode)
{
    const size_t n_bytes = N_VALUES / type->block_elements * type->block_bytes;

    type->encode[DEQUANT_SET_scalar](values, good, N_VALUES);
    memset(got, 0x5a, n_bytes);
    encode(values, got, N_VALUES);
    return memcmp(good, got, n_bytes) == 0;
}

bool check_encoder(const struct dequant_type *type, dequant_encode_fn *encode)
{
    static struct fenced source, target;
    uint64_t state = 1;
    bool is_good = true;

    for (size_t round = 0; round < 16; round++) {
        /* All upper halves, in order and mixed. */
        for (uint32_t i = 0; i < N_VALUES; i++)
            values[i] = (round % 2 ? i * 40503u % N_VALUES : i) << 16 | lower_half(round, &state);
        is_good &= gives_the_same(type, encode);
        make_ties(&state, round % 2 ? 127 : 8);
        is_good &= gives_the_same(type, encode);
        make_exponents(&state);
        is_good &= gives_the_same(type, encode);
    }
    if (!source.data) {
        source = make_fenced(N_VALUES);
        target = make_fenced(N_VALUES);
    }
    for (size_t n = 0; n < 50 * type->block_elements; n += type->block_elements) {
        const size_t n_bytes = n / type->block_elements * type->block_bytes;
        const size_t shift = n / type->block_elements;
        uint8_t *in = source.data + source.n_bytes - 4 * n - shift % 4;
        uint8_t *out = target.data + target.n_bytes - n_bytes - shift % 3;

        memcpy(in, values, 4 * n);
        encode(in, out, n);
        type->encode[DEQUANT_SET_scalar](values, good, n);
        is_good &= memcmp(good, out, n_bytes) == 0;
    }
    return is_good;
}

/* Check the definition of rounding: each half rounds to itself, and a tie rounds to even. */
static bool rounds_to_halves(void)
{
    bool is_good = true;

    for (uint32_t half = 0; half < 0x7c00; half++) {
        const uint16_t pair[2] = {(uint16_t)half, (uint16_t)(half + 1)};
        float ends[2], middle;
        uint16_t rounded[3];

        dequant_decode(dequant_type_by_id(DEQUANT_F16), pair, ends, 2);
        if (half == 0x7bff)
            ends[1] = 65536; /* the next half if it were not infinity */
        middle = (ends[0] + ends[1]) / 2;
        dequant_scalar_to_f16(ends, rounded, 1);
        dequant_scalar_to_f16(&middle, rounded + 1, 1);
        middle = -middle;
        dequant_scalar_to_f16(&middle, rounded + 2, 1);
        is_good &= rounded[0] == half && rounded[1] == (half + half % 2) &&
                   rounded[2] == (0x8000 | (half + half % 2));
    }
    return is_good;
}

/*
 * Encode multiples of `step`, which is exact in all formats. The first has the greatest magnitude,
 * so the integers are these multiples.
 */
static bool keeps_integers(float step)
{
    struct dequant_q8_0 q8;
    struct dequant_q4_0 q4;
    float block[DEQUANT_BLOCK];
    bool is_good = true;

    for (int i = 0; i < DEQUANT_BLOCK; i++)
        block[i] = (float)(i * 8 - 127) * step;
    dequant_scalar_to_q8_0(block, &q8, DEQUANT_BLOCK);
    for (int i = 0; i < DEQUANT_BLOCK; i++)
        is_good &= q8.qs[i] == i * 8 - 127;
    for (int i = 0; i < DEQUANT_BLOCK; i++)
        block[i] = (float)(i % 16 - 8) * step;
    dequant_scalar_to_q4_0(block, &q4, DEQUANT_BLOCK);
    for (int i = 0; i < DEQUANT_BLOCK / 2; i++)
        is_good &= q4.qs[i] == (i | i << 4);
    return is_good && dequant_f16_to_f32(q8.d) == step && dequant_f16_to_f32(q4.d) == step;
}

/* Ties round away from zero in Q8_0 and up in Q4_0, and the float below a tie does not. */
static bool rounds_ties(void)
{
    static const float numbers[] = {127, 0.5f, -0.5f, 2.5f, -2.5f, 126.5f, -126.5f, -127};
    static const int8_t integers[] = {127, 1, -1, 3, -3, 127, -127, -127};
    static const float fours[] = {-8, 0.5f, -0.5f, 7, 7.5f, -7.5f, 8};
    static const uint8_t fourth[] = {0, 9, 8, 15, 15, 1, 15};
    float block[DEQUANT_BLOCK] = {0};
    struct dequant_q8_0 q8;
    struct dequant_q4_0 q4;
    bool is_good = true;

    memcpy(block, numbers, sizeof numbers);
    for (size_t i = 1; i < COUNT(numbers); i++)
        block[16 + i] = nextafterf(numbers[i], 0);
    dequant_scalar_to_q8_0(block, &q8, DEQUANT_BLOCK);
    for (size_t i = 0; i < COUNT(numbers); i++)
        is_good &= q8.qs[i] == integers[i];
    for (size_t i = 1; i + 1 < COUNT(numbers); i++)
        is_good &= q8.qs[16 + i] == (integers[i] > 0 ? integers[i] - 1 : integers[i] + 1);
    memset(block, 0, sizeof block);
    memcpy(block, fours, sizeof fours);
    dequant_scalar_to_q4_0(block, &q4, DEQUANT_BLOCK);
    for (size_t i = 0; i < COUNT(fours); i++)
        is_good &= (q4.qs[i] & 15) == fourth[i];
    return is_good;
}

/* Check that all values of a block of zeros but one are `value` when they are decoded. */
static bool becomes(uint32_t id, float number, float value)
{
    const struct dequant_type *type = dequant_type_by_id(id);
    float block[DEQUANT_BLOCK] = {0}, back[DEQUANT_BLOCK];
    uint8_t encoded[64];
    bool is_good = true;

    block[9] = number;
    type->encode[DEQUANT_SET_scalar](block, encoded, DEQUANT_BLOCK);
    type->decode[DEQUANT_SET_scalar](encoded, back, 1, (struct dequant_row){0});
    for (size_t i = 0; i < DEQUANT_BLOCK; i++)
        is_good &= i == 9 || (isnan(value) ? isnan(back[i]) : back[i] == value);
    return is_good && (isnan(value) ? isnan(back[9]) : true);
}

/* The greatest of two of equal magnitude is the first, and zeros have the scale of ggml, -0. */
static bool takes_the_first(void)
{
    float block[DEQUANT_BLOCK] = {0};
    struct dequant_q4_0 q4;
    bool is_good;

    dequant_scalar_to_q4_0(block, &q4, DEQUANT_BLOCK);
    is_good = q4.d == 0x8000 && q4.qs[0] == 0x88 && q4.qs[15] == 0x88;
    block[5] = 8;
    block[20] = -8;
    dequant_scalar_to_q4_0(block, &q4, DEQUANT_BLOCK);
    is_good &= dequant_f16_to_f32(q4.d) == -1;
    block[2] = -8;
    dequant_scalar_to_q4_0(block, &q4, DEQUANT_BLOCK);
    return is_good && dequant_f16_to_f32(q4.d) == 1;
}

void check_encoder_references(void)
{
    static const uint32_t ids[] = {DEQUANT_Q8_0, DEQUANT_Q4_0};
    bool is_good = true;

    count(rounds_to_halves(), "reference", "to f16, halves and ties");
    for (int exponent = -14; exponent < 15; exponent++)
        is_good &= keeps_integers(ldexpf(1, exponent));
    count(is_good, "reference", "to Q8_0 and Q4_0, integers");
    count(rounds_ties(), "reference", "to Q8_0 and Q4_0, ties");
    count(takes_the_first(), "reference", "to Q4_0, sign of the scale");
    for (size_t i = 0; i < COUNT(ids); i++) {
        count(becomes(ids[i], 0, 0) && becomes(ids[i], -0.0f, 0) && becomes(ids[i], 1e-45f, 0) &&
                  becomes(ids[i], 1e-39f, 0) && becomes(ids[i], 1e-20f, 0) && becomes(ids[i], 3, 0),
              "reference", "to Q8_0 and Q4_0, zeros");
        count(becomes(ids[i], NAN, NAN) && becomes(ids[i], INFINITY, NAN) &&
                  becomes(ids[i], -INFINITY, NAN),
              "reference", "to Q8_0 and Q4_0, NaN and infinity");
    }
}
