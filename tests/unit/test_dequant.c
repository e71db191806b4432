/* The type table and every decoder, on pseudo-random blocks. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "dequant/types.h"

/* Enough elements that nearly every entry of the largest grid is used. */
#define ELEMENTS 65536

/* The largest type in bytes per element is 8 bytes wide. */
#define MAX_BYTES ((ELEMENTS + 256) * 8)

#define GUARD_ELEMENTS 16

enum scale { NO_SCALE, F16_SCALE, TWO_F16_SCALES, F32_SCALE, SPLIT_F16_SCALE };

/*
 * What each row of the table must hold and do. The hashes are FNV-1a (64 bits) and were not made
 * with the code under test:
 *
 * - `values`, of the floats that make_blocks() decodes to, is made with the dequantize_row_*
 *   functions of ggml at commit d99724f2b141fed9e1a9f402213506c081433465, F16 and BF16 with its
 *   scalar conversions; integers, F64 and Q8_1 (d * q), which ggml does not convert, by definition.
 * - `swapped`, of the same blocks in the other byte order, is made by swapping the members of
 *   ggml's own block structs.
 *
 * The removed types have no decoder, and so no hash.
 */
struct expectation {
    uint32_t id;
    const char *name;
    uint32_t block_elements;
    uint32_t block_bytes;
    enum scale scale;
    uint16_t scale_offset; /* bytes; a second scale follows the first */
    uint64_t values;
    uint64_t swapped;
};

static const struct expectation expectations[] = {
    {0, "F32", 1, 4, NO_SCALE, 0, 0x78e375c30a1a5093, 0x1a3959099de43447},
    {1, "F16", 1, 2, NO_SCALE, 0, 0x7750f88b8d257fd9, 0x19bb7402b0f06c65},
    {2, "Q4_0", 32, 18, F16_SCALE, 0, 0x87f67c07873e24a0, 0xce587df2c3f81127},
    {3, "Q4_1", 32, 20, TWO_F16_SCALES, 0, 0xbf258e07876edefa, 0x15b6adb90b18ad58},
    {6, "Q5_0", 32, 22, F16_SCALE, 0, 0x8e376ef7c718cd00, 0x97eb26796ffee4b1},
    {7, "Q5_1", 32, 24, TWO_F16_SCALES, 0, 0x57edff16d6c969fe, 0xffc5738194ff418c},
    {8, "Q8_0", 32, 34, F16_SCALE, 0, 0xf9ff9c9d4b150fc6, 0x343d3a03f51f0a85},
    {9, "Q8_1", 32, 36, TWO_F16_SCALES, 0, 0xae99efd46efac839, 0xb2226204e87667f9},
    {10, "Q2_K", 256, 84, TWO_F16_SCALES, 80, 0xe064bf7437f02d35, 0x44d6c69daddf0f89},
    {11, "Q3_K", 256, 110, F16_SCALE, 108, 0x5434fe27c118e1e0, 0xfafa773c36c769c0},
    {12, "Q4_K", 256, 144, TWO_F16_SCALES, 0, 0xc750fa9317102a62, 0x53a42af86eae2df2},
    {13, "Q5_K", 256, 176, TWO_F16_SCALES, 0, 0x167e15a7bc4ce356, 0xbefc3d860dd0c9a0},
    {14, "Q6_K", 256, 210, F16_SCALE, 208, 0xddb2c88f8e4ed207, 0x07ad8109205e58bc},
    {15, "Q8_K", 256, 292, F32_SCALE, 0, 0x96a18bdd9ec5abb2, 0xda8905bdc5261f30},
    {16, "IQ2_XXS", 256, 66, F16_SCALE, 0, 0xbb10903f36c46d8c, 0xa19754b98b550ceb},
    {17, "IQ2_XS", 256, 74, F16_SCALE, 0, 0x961dd81fafaad967, 0x4a7c21cb9d717852},
    {18, "IQ3_XXS", 256, 98, F16_SCALE, 0, 0x75e99a0b7e1258d5, 0xddfcba28cffc4665},
    {19, "IQ1_S", 256, 50, F16_SCALE, 0, 0xa3487b3015567a86, 0x36a1faa5779b2f74},
    {20, "IQ4_NL", 32, 18, F16_SCALE, 0, 0xa0e445330d267a96, 0xdddaba1e46b40b52},
    {21, "IQ3_S", 256, 110, F16_SCALE, 0, 0xbc5b5fa46376662c, 0xd193845554523a05},
    {22, "IQ2_S", 256, 82, F16_SCALE, 0, 0x83f9dabc00813693, 0x886f67ca0acbbd84},
    {23, "IQ4_XS", 256, 136, F16_SCALE, 0, 0x1a3a16adad7bc6a9, 0xe9bdf01b51129a94},
    {24, "I8", 1, 1, NO_SCALE, 0, 0x6900b67cb87d2f7f, 0x8cc294badc5af63b},
    {25, "I16", 1, 2, NO_SCALE, 0, 0x36bc92f4591cbf29, 0x728416c60231816d},
    {26, "I32", 1, 4, NO_SCALE, 0, 0x1f35f6bf23ea70b1, 0x2332336ead0b0273},
    {27, "I64", 1, 8, NO_SCALE, 0, 0x2901a5c560895a4c, 0x21a23d8e1ebd0269},
    {28, "F64", 1, 8, NO_SCALE, 0, 0x9f12d36da2394fd7, 0xc43475af1bfff60e},
    {29, "IQ1_M", 256, 56, SPLIT_F16_SCALE, 48, 0x7dc3470ebc20b0b5, 0x9bfcf01cd3b40935},
    {30, "BF16", 1, 2, NO_SCALE, 0, 0x7876e54b6f8717c0, 0x81e25c46ae2065da},
    {31, "Q4_0_4_4", 32, 18, NO_SCALE, 0, 0, 0},
    {32, "Q4_0_4_8", 32, 18, NO_SCALE, 0, 0, 0},
    {33, "Q4_0_8_8", 32, 18, NO_SCALE, 0, 0, 0},
    {34, "TQ1_0", 256, 54, F16_SCALE, 52, 0x24dca35f65720703, 0xb23e933cfd43c61b},
    {35, "TQ2_0", 256, 66, F16_SCALE, 64, 0x2ef75a9456e1c14d, 0xe80f30146ea59ba9},
    {36, "IQ4_NL_4_4", 32, 18, NO_SCALE, 0, 0, 0},
    {37, "IQ4_NL_4_8", 32, 18, NO_SCALE, 0, 0, 0},
    {38, "IQ4_NL_8_8", 32, 18, NO_SCALE, 0, 0, 0},
    {39, "MXFP4", 32, 17, NO_SCALE, 0, 0x4c761edd528e6164, 0xbbbab932fde1561e},
    {40, "NVFP4", 64, 36, NO_SCALE, 0, 0xb60f8e177ef0699c, 0x974b2b1cb5431d1e},
    {41, "Q1_0", 128, 18, F16_SCALE, 0, 0x7a7f330a50ca18a5, 0x91ca4b4f57dd9b89},
    {42, "Q2_0", 64, 18, F16_SCALE, 0, 0x2a44a334544769aa, 0x44f328a2d812371f},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t blocks[MAX_BYTES];
static uint8_t moved_blocks[MAX_BYTES + 16];
static uint8_t swapped_blocks[MAX_BYTES];
static float out[ELEMENTS + 256 + 2 * GUARD_ELEMENTS];
static float other_out[ELEMENTS + 256];

/* BEGIN block maker */

/* SplitMix64 */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t fnv1a(const void *data, size_t n_bytes)
{
    const uint8_t *bytes = data;
    uint64_t hash = 0xcbf29ce484222325;

    for (size_t i = 0; i < n_bytes; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    return hash;
}

/* Any sign, a finite exponent from subnormal to 2^5, any fraction. */
static uint16_t random_f16(uint64_t *state)
{
    uint64_t r = next_random(state);

    return (uint16_t)((r & 0x83ff) | (r >> 32) % 21 << 10);
}

static size_t blocks_for(const struct expectation *e)
{
    return ELEMENTS / e->block_elements + 1;
}

/* Fills `to` with blocks_for(e) blocks of random bits and sane scales. */
static void make_blocks(const struct expectation *e, uint8_t *to)
{
    size_t n_bytes = blocks_for(e) * e->block_bytes;
    uint64_t state = e->id;

    for (size_t i = 0; i < n_bytes; i++)
        to[i] = (uint8_t)(next_random(&state) >> 40);

    for (size_t i = 0; i < blocks_for(e); i++) {
        uint8_t *at = to + i * e->block_bytes + e->scale_offset;
        uint16_t halves[2] = {random_f16(&state), random_f16(&state)};
        uint32_t sign = (uint32_t)(halves[0] >> 15) << 31;
        uint32_t f32 = sign | ((uint32_t)(halves[0] & 0x7fff) << 13);

        switch (e->scale) {
        case NO_SCALE:
            break;
        case F16_SCALE:
            memcpy(at, halves, 2);
            break;
        case TWO_F16_SCALES:
            memcpy(at, halves, 4);
            break;
        case F32_SCALE:
            f32 += (uint32_t)(127 - 15) << 23;
            memcpy(at, &f32, 4);
            break;
        case SPLIT_F16_SCALE: /* the upper nibbles of four 16-bit words */
            for (size_t w = 0; w < 4; w++)
                at[2 * w + 1] =
                    (uint8_t)((at[2 * w + 1] & 15) | ((halves[0] >> (4 * w)) & 15) << 4);
            break;
        }
    }
}

/* END block maker */

static const struct expectation *expectation_of(const struct dequant_type *type)
{
    for (size_t i = 0; i < COUNT(expectations); i++) {
        if (expectations[i].id == type->id)
            return &expectations[i];
    }
    cr_assert_fail("%s: the type has no row in the expectations of this test", type->name);
    return NULL;
}

/* Calls `test` with every row that has a decoder, its expectation, and its blocks in `blocks`. */
static void for_each_decoder(void (*test)(const struct dequant_type *, const struct expectation *))
{
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const struct expectation *e = expectation_of(type);

        if (type->decode == NULL)
            continue;
        make_blocks(e, blocks);
        test(type, e);
    }
}

Test(dequant, table_is_complete_and_ordered)
{
    cr_assert_eq(dequant_type_count(), COUNT(expectations));
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const struct expectation *e = expectation_of(type);

        if (i > 0)
            cr_assert_gt(type->id, dequant_type_at(i - 1)->id);
        cr_assert_str_eq(type->name, e->name);
        cr_assert_eq(type->block_elements, e->block_elements, "%s", type->name);
        cr_assert_eq(type->block_bytes, e->block_bytes, "%s", type->name);
        cr_assert_eq(type->decode == NULL, e->values == 0, "%s", type->name);
    }
}

Test(dequant, lookup_by_id)
{
    const uint32_t unknown[] = {4, 5, 43, 44, 1000, UINT32_MAX};
    size_t found = 0;

    for (uint32_t id = 0; id < 1000; id++) {
        const struct dequant_type *type = dequant_type_by_id(id);

        if (type != NULL) {
            cr_assert_eq(type->id, id);
            found++;
        }
    }
    cr_assert_eq(found, dequant_type_count());
    for (size_t i = 0; i < COUNT(unknown); i++)
        cr_assert_null(dequant_type_by_id(unknown[i]));
}

static void check_values(const struct dequant_type *type, const struct expectation *e)
{
    size_t n_blocks = blocks_for(e);
    uint64_t hash;

    type->decode(blocks, out, n_blocks);
    hash = fnv1a(out, n_blocks * e->block_elements * sizeof(float));
    cr_assert_eq(hash, e->values, "%s: hash %#018llx", type->name, (unsigned long long)hash);
}

Test(dequant, values_are_those_of_ggml)
{
    for_each_decoder(check_values);
}

/* Any count of blocks gives the same floats as one block after the other, and nothing else. */
static void check_counts(const struct dequant_type *type, const struct expectation *e)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 17};
    float *first = out + GUARD_ELEMENTS;

    for (size_t i = 0; i < 17; i++)
        type->decode(blocks + i * e->block_bytes, other_out + i * e->block_elements, 1);

    for (size_t i = 0; i < COUNT(counts); i++) {
        size_t n_elements = counts[i] * e->block_elements;

        memset(out, 0x5a, sizeof(out));
        type->decode(blocks, first, counts[i]);
        cr_assert_eq(memcmp(first, other_out, n_elements * sizeof(float)), 0, "%s: %zu blocks",
                     type->name, counts[i]);
        for (size_t k = 0; k < GUARD_ELEMENTS * sizeof(float); k++) {
            cr_assert_eq(((const uint8_t *)out)[k], 0x5a, "%s: write before out", type->name);
            cr_assert_eq(((const uint8_t *)(first + n_elements))[k], 0x5a, "%s: write behind out",
                         type->name);
        }
    }
}

Test(dequant, any_number_of_blocks)
{
    for_each_decoder(check_counts);
}

static void check_alignments(const struct dequant_type *type, const struct expectation *e)
{
    const size_t n_blocks = 17;

    type->decode(blocks, other_out, n_blocks);
    for (size_t offset = 1; offset < 16; offset++) {
        memcpy(moved_blocks + offset, blocks, n_blocks * e->block_bytes);
        type->decode(moved_blocks + offset, out, n_blocks);
        cr_assert_eq(memcmp(out, other_out, n_blocks * e->block_elements * sizeof(float)), 0,
                     "%s at an address plus %zu", type->name, offset);
    }
}

Test(dequant, any_alignment)
{
    for_each_decoder(check_alignments);
}

Test(dequant, byte_order_map_covers_the_block)
{
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);
        size_t n_bytes = 0;

        cr_assert_not_null(type->fields, "%s", type->name);
        for (const struct dequant_field *f = type->fields; f->width_bytes != 0; f++) {
            cr_assert(f->width_bytes == 1 || f->width_bytes == 2 || f->width_bytes == 4 ||
                          f->width_bytes == 8,
                      "%s", type->name);
            n_bytes += (size_t)f->width_bytes * f->count;
        }
        cr_assert_eq(n_bytes, type->block_bytes, "%s", type->name);
    }
}

static void check_swap(const struct dequant_type *type, const struct expectation *e)
{
    size_t n_blocks = blocks_for(e);
    size_t n_bytes = n_blocks * e->block_bytes;
    uint64_t hash;

    dequant_swap_blocks(type, blocks, swapped_blocks, n_blocks);
    hash = fnv1a(swapped_blocks, n_bytes);
    cr_assert_eq(hash, e->swapped, "%s: hash %#018llx", type->name, (unsigned long long)hash);

    /* Back again, to an odd address, and not a byte too far. */
    memset(moved_blocks, 0x5a, sizeof(moved_blocks));
    dequant_swap_blocks(type, swapped_blocks, moved_blocks + 1, n_blocks);
    cr_assert_eq(memcmp(moved_blocks + 1, blocks, n_bytes), 0, "%s", type->name);
    cr_assert_eq(moved_blocks[0], 0x5a, "%s", type->name);
    cr_assert_eq(moved_blocks[1 + n_bytes], 0x5a, "%s", type->name);

    dequant_swap_blocks(type, blocks, moved_blocks, 0);
    cr_assert_eq(moved_blocks[0], 0x5a, "%s", type->name);
}

Test(dequant, swap_is_by_field_and_reversible)
{
    for_each_decoder(check_swap);
}
