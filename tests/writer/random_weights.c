#include "tests/writer/random_weights.h"

#include "dequant/blocks.h"
#include "dequant/iq_blocks.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const struct dequant_type *sample_type(const char *name)
{
    size_t i = 0;
    while (i < dequant_type_count() && strcmp(dequant_type_at(i)->name, name) != 0)
        i++;
    assert(i < dequant_type_count());
    return dequant_type_at(i);
}

/* ---- random numbers ---- */

/* splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014. */
static uint64_t random_u64(struct sample_random *r)
{
    uint64_t x = r->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void random_bytes(struct sample_random *r, unsigned char *bytes, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++)
        bytes[i] = (unsigned char)(random_u64(r) >> 56);
}

/*
 * Return a bell-shaped random number with mean 0 and the given standard deviation, at most 3.5 of
 * them away.
 */
static float random_normal(struct sample_random *r, float std)
{
    uint64_t bits = random_u64(r);
    int32_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += (int16_t)(uint16_t)(bits >> (16 * i));
    /* The sum of four uniform 16-bit numbers has a standard deviation of 2^16 * sqrt(4 / 12). */
    return (float)sum * (std / 37837.0f);
}

/* ---- tensor data ---- */

/* Return the bits of the F16 nearest to `value`, which must be in the range of F16. */
static uint32_t half_bits(float value)
{
    float magnitude = value < 0 ? -value : value;
    float unit = 0x1p-24f; /* the last mantissa bit of the lowest exponent */
    uint32_t exponent_steps = 0;
    while (magnitude >= unit * 2048) {
        unit *= 2;
        exponent_steps++;
    }
    /* The mantissa's hidden bit adds one to the exponent, except in subnormal numbers. */
    uint32_t bits = (exponent_steps << 10) + (uint32_t)(magnitude / unit + 0.5f);
    return value < 0 ? bits | 0x8000u : bits;
}

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void store_le(unsigned char *to, uint32_t value, size_t width_bytes)
{
    for (size_t i = 0; i < width_bytes; i++)
        to[i] = (unsigned char)(value >> (8 * i));
}

static uint32_t bfloat_bits(float value)
{
    return float_bits(value) >> 16;
}

/*
 * Make the minimum of each sub-block equal to its scale, so that m = d * (the middle of the quants)
 * centres the values.
 */
static void pair_q2_k(unsigned char *block)
{
    struct dequant_q2_k *b = (struct dequant_q2_k *)block;
    for (size_t i = 0; i < sizeof b->scales; i++)
        b->scales[i] = (unsigned char)((b->scales[i] & 15) * 0x11);
}

static void pair_k_scales(struct dequant_k_scales *pairs)
{
    memcpy(pairs->mins, pairs->scales, sizeof pairs->mins);
    for (size_t i = 0; i < sizeof pairs->low; i++)
        pairs->low[i] = (unsigned char)((pairs->low[i] & 15) * 0x11);
}

static void pair_q4_k(unsigned char *block)
{
    pair_k_scales(&((struct dequant_q4_k *)block)->scales);
}

static void pair_q5_k(unsigned char *block)
{
    pair_k_scales(&((struct dequant_q5_k *)block)->scales);
}

/*
 * How to fill a block of a type. `bits` makes the number of an unquantized type from a float. A
 * quantized block gets random bytes and then its scale d, an F16 or the exponent of a power of two;
 * `deviation` is the standard deviation of its elements when d = 1. Types with an
 * offset m have a `middle`, and `pair` if their sub-blocks have offsets of their own.
 */
struct filler {
    const char *type;
    uint32_t (*bits)(float value);
    float deviation;
    size_t d_at; /* offset in the block, in bytes */
    size_t m_at;
    float middle;
    void (*pair)(unsigned char *block);
    bool is_power; /* d is an E8M0 number */
};

#define AT(name, field) offsetof(struct dequant_##name, field)

static const struct filler fillers[] = {
    {"F32", .bits = float_bits},
    {"F16", .bits = half_bits},
    {"BF16", .bits = bfloat_bits},
    {"Q4_0", NULL, 4.64f, .d_at = AT(q4_0, d)},
    {"Q4_1", NULL, 4.61f, AT(q4_1, d), AT(q4_1, m), .middle = -7.5f},
    {"Q5_0", NULL, 9.25f, .d_at = AT(q5_0, d)},
    {"Q5_1", NULL, 9.23f, AT(q5_1, d), AT(q5_1, m), .middle = -15.5f},
    {"Q8_0", NULL, 73.9f, .d_at = AT(q8_0, d)},
    {"IQ2_S", NULL, 55.0f, .d_at = AT(iq2_s, d)},
    {"IQ3_S", NULL, 150.0f, .d_at = AT(iq3_s, d)},
    {"IQ4_NL", NULL, 67.4f, .d_at = AT(iq4_nl, d)},
    {"IQ4_XS", NULL, 1245.0f, .d_at = AT(iq4_xs, d)},
    {"Q2_K", NULL, 9.84f, AT(q2_k, d), AT(q2_k, m), 1.5f, pair_q2_k, false},
    {"Q3_K", NULL, 43.3f, .d_at = AT(q3_k, d)},
    {"Q4_K", NULL, 168.3f, AT(q4_k, d), AT(q4_k, m), 7.5f, pair_q4_k, false},
    {"Q5_K", NULL, 337.2f, AT(q5_k, d), AT(q5_k, m), 15.5f, pair_q5_k, false},
    {"Q6_K", NULL, 1365.0f, .d_at = AT(q6_k, d)},
    {"MXFP4", NULL, 2.93f, .d_at = AT(mxfp4, e), .is_power = true},
};

static const struct filler *filler_of(const char *type)
{
    for (size_t i = 0; i < sizeof fillers / sizeof fillers[0]; i++) {
        if (strcmp(fillers[i].type, type) == 0)
            return &fillers[i];
    }
    return NULL;
}

static void fill_quants(struct sample_random *r, const struct filler *filler, unsigned char *block,
                        size_t block_bytes, float std)
{
    random_bytes(r, block, block_bytes);

    float strength = (float)(192 + random_u64(r) % 128) / 256.0f;
    float d = std / filler->deviation * strength;
    if (filler->is_power) {
        block[filler->d_at] = (unsigned char)(127 + ilogbf(d));
        return;
    }
    if (filler->pair)
        filler->pair(block);
    if (filler->middle != 0) {
        store_le(block + filler->m_at, half_bits(d * filler->middle), 2);
    } else if (random_u64(r) % 2 != 0) {
        /* signed quants reach one step further down than up; random signs balance this */
        d = -d;
    }
    store_le(block + filler->d_at, half_bits(d), 2);
}

void sample_fill_blocks(struct sample_random *r, const struct dequant_type *type,
                        unsigned char *blocks, size_t n_blocks, float mean, float std)
{
    const struct filler *filler = filler_of(type->name);
    assert(filler);

    for (size_t i = 0; i < n_blocks; i++) {
        unsigned char *block = blocks + i * type->block_bytes;
        if (filler->bits)
            store_le(block, filler->bits(mean + random_normal(r, std)), type->block_bytes);
        else
            fill_quants(r, filler, block, type->block_bytes, std);
    }
}
