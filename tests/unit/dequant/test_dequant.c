/* The type table and every decoder, on pseudo-random blocks. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "dequant/rows.h"
#include "tests/unit/dequant/random_blocks.h"

#define GUARD_ELEMENTS 16

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint8_t blocks[MAX_BYTES];
static uint8_t moved_blocks[MAX_BYTES + 16];
static uint8_t swapped_blocks[MAX_BYTES];
static float out[ELEMENTS + 256 + 2 * GUARD_ELEMENTS];
static float other_out[ELEMENTS + 256];
static uint8_t headers[DEQUANT_MAX_HEADER_BYTES];

enum { MAX_BLOCK = 256 };

/* Decode blocks of row `index` of the group with the reference. */
static void decode(const struct dequant_type *type, uint32_t index, const uint8_t *from, float *to,
                   size_t n_blocks)
{
    type->decode[DEQUANT_SET_scalar](from, to, n_blocks, (struct dequant_row){headers, index});
}

/* Call `test` for every type that has a decoder, after filling `blocks` and `headers`. */
static void for_each_decoder(void (*test)(const struct dequant_type *, const struct expectation *))
{
    for (size_t i = 0; i < n_expectations; i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const struct expectation *e = expectation_of(type);

        if (!dequant_is_decodable(type))
            continue;
        make_blocks(e, blocks);
        make_headers(e, headers);
        test(type, e);
    }
}

Test(dequant, table_is_complete_and_ordered)
{
    const size_t n_of_eras = dequant_type_count() + dequant_old_type_count();
    const size_t n_types = dequant_row_count();

    for (size_t i = 0; i < n_types; i++) {
        const struct dequant_type *type = dequant_type_at(i);
        const struct expectation *e = expectation_of(type);

        cr_expect_eq(e, &expectations[i], "%s: wrong position in random_blocks.c", type->name);
        if (i > 0 && type->era == dequant_type_at(i - 1)->era)
            cr_expect(type->id > dequant_type_at(i - 1)->id ||
                          (i >= n_of_eras && type->id == dequant_type_at(i - 1)->id),
                      "%s", type->name);
        cr_expect_str_eq(type->name, e->name);
        cr_expect_eq(type->block_elements, e->block_elements, "%s", type->name);
        cr_expect_eq(type->block_bytes, e->block_bytes, "%s", type->name);
        cr_expect_leq(dequant_headers_bytes(type), (size_t)DEQUANT_MAX_HEADER_BYTES, "%s",
                      type->name);
        cr_expect(type->tail_bytes == 0 ||
                      (type->row_header_bytes == 0 && type->interleave_rows == 1),
                  "%s", type->name);
        cr_expect_eq(!dequant_is_decodable(type), e->values == 0, "%s", type->name);
    }
    cr_expect_eq(n_types, n_expectations);
}

Test(dequant, lookup_by_id)
{
    /* Ids 4 and 5 are removed; neither ggml nor ik_llama.cpp has used the others. */
    const uint32_t unknown[] = {4, 5, 96, 130, 500, 1000, UINT32_MAX};
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

/* The readings of an id are the rows with it, and differ in their names. */
Test(dequant, readings)
{
    size_t found = 0;

    for (uint32_t id = 0; id < 1000; id++) {
        const struct dequant_type *type;

        cr_expect_eq(dequant_candidate_at(id, 0), dequant_type_by_id(id));
        for (size_t i = 0; (type = dequant_candidate_at(id, i)); i++) {
            cr_expect_eq(type->id, id);
            cr_expect_eq(dequant_candidate_by_name(id, type->name), type, "%s", type->name);
            cr_expect_not_null(type->program, "%s", type->name);
            cr_expect_leq(strlen(type->name), DEQUANT_NAME_COLUMNS, "%s", type->name);
            found++;
        }
    }
    cr_expect_eq(found, dequant_type_count() + dequant_other_type_count());
    cr_expect_str_eq(dequant_candidate_by_name(42, "pq2_0")->name, "PQ2_0");
    cr_expect_null(dequant_candidate_by_name(42, "Q4_0"));
    cr_expect_null(dequant_candidate_by_name(1000, "Q4_0"));
}

/* A type and its plain type have the same values; zeros may differ in sign. */
Test(dequant, values_of_plain_types)
{
    static float values[MAX_BLOCK], plain_values[MAX_BLOCK];
    static uint8_t converted[MAX_BLOCK * 4];

    for (size_t i = 0; i < n_expectations; i++) {
        const struct dequant_type *type = dequant_type_at(i), *plain = dequant_modern(type);

        if (!type->plain)
            continue;
        make_blocks(expectation_of(type), blocks);
        for (uint32_t row = 0; row < type->interleave_rows; row++) {
            decode(type, row, blocks, values, 1);
            dequant_modernize_blocks(type, row, blocks, converted, 1);
            decode(plain, 0, converted, plain_values, type->plain->n_blocks);
            for (size_t k = 0; k < type->block_elements; k++)
                cr_assert(values[k] == plain_values[k], "%s: row %u, element %zu", type->name, row,
                          k);
        }
    }
}

Test(dequant, lookup_by_era)
{
    for (size_t i = 0; i < dequant_type_count() + dequant_old_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        cr_expect_eq(dequant_type_of_era(type->id, type->era), type);
    }
    cr_expect_eq(dequant_type_of_era(1, 0), dequant_type_by_id(1));
    cr_expect_eq(dequant_type_of_era(6, 1), dequant_type_by_id(6));
    cr_expect_null(dequant_type_of_era(4, 1));
    cr_expect_null(dequant_type_of_era(1000, 0));
}

static void check_values(const struct dequant_type *type, const struct expectation *e)
{
    size_t n_blocks = blocks_for(e);
    uint64_t hash = fnv1a(NULL, 0);

    for (uint32_t row = 0; row < type->interleave_rows; row++) {
        decode(type, row, blocks, out, n_blocks);
        hash = fnv1a_more(hash, out, n_blocks * e->block_elements * sizeof(float));
    }
    cr_expect_eq(hash, e->values, "%s: hash %#018llx", type->name, (unsigned long long)hash);
}

Test(dequant, values_match_ggml)
{
    for_each_decoder(check_values);
}

/*
 * Check that any number of blocks gives the same floats as decoding each alone, and writes no
 * others.
 */
static void check_counts(const struct dequant_type *type, const struct expectation *e)
{
    static const size_t counts[] = {0, 1, 2, 3, 7, 17};
    const uint32_t row = type->interleave_rows - 1;
    float *first = out + GUARD_ELEMENTS;
    uint8_t guard[GUARD_ELEMENTS * sizeof(float)];

    memset(guard, 0x5a, sizeof guard);

    for (size_t i = 0; i < 17; i++)
        decode(type, row, blocks + i * stride_of(e), other_out + i * e->block_elements, 1);

    for (size_t i = 0; i < COUNT(counts); i++) {
        size_t n_elements = counts[i] * e->block_elements;

        memset(out, 0x5a, sizeof(out));
        decode(type, row, blocks, first, counts[i]);
        cr_expect_eq(memcmp(first, other_out, n_elements * sizeof(float)), 0, "%s: %zu blocks",
                     type->name, counts[i]);
        cr_expect_eq(memcmp(out, guard, sizeof guard), 0, "%s: write before the start of out",
                     type->name);
        cr_expect_eq(memcmp(first + n_elements, guard, sizeof guard), 0,
                     "%s: write past the end of out", type->name);
    }
}

Test(dequant, any_number_of_blocks)
{
    for_each_decoder(check_counts);
}

static void check_alignments(const struct dequant_type *type, const struct expectation *e)
{
    const size_t n_blocks = 17;

    decode(type, 0, blocks, other_out, n_blocks);
    for (size_t offset = 1; offset < 16; offset++) {
        memcpy(moved_blocks + offset, blocks, n_blocks * stride_of(e));
        decode(type, 0, moved_blocks + offset, out, n_blocks);
        cr_expect_eq(memcmp(out, other_out, n_blocks * e->block_elements * sizeof(float)), 0,
                     "%s: misaligned by %zu", type->name, offset);
    }
}

Test(dequant, any_alignment)
{
    for_each_decoder(check_alignments);
}

/* With an infinite scale or offset, no number is finite, so n_f16 and f16_offset are right. */
static void test_scale_limit(const struct dequant_type *type, const struct expectation *e)
{
    static const uint8_t infinity[2] = {0x00, 0x7c}, one[2] = {0x00, 0x3c};
    uint8_t *const scales = blocks + type->f16_offset;

    for (size_t i = 0; i < type->n_f16; i++)
        memcpy(scales + 2 * i, one, sizeof one);
    if (type->n_f16 > 0)
        cr_expect_not(type->is_scale_at_limit(type, blocks), "%s", type->name);
    for (size_t i = 0; i < type->n_f16; i++) {
        memcpy(scales + 2 * i, infinity, sizeof infinity);
        cr_expect(type->is_scale_at_limit(type, blocks), "%s", type->name);
        decode(type, 0, blocks, out, 1);
        for (size_t k = 0; k < type->block_elements; k++)
            cr_expect_not(isfinite(out[k]), "%s: element %zu", type->name, k);
        memcpy(scales + 2 * i, one, sizeof one);
    }
}

Test(dequant, scales_at_their_limit)
{
    for_each_decoder(test_scale_limit);
}

Test(dequant, byte_order_map_covers_the_block)
{
    for (size_t i = 0; i < n_expectations; i++) {
        const struct dequant_type *type = dequant_type_at(i);
        size_t n_bytes = 0;

        cr_assert_not_null(type->fields, "%s", type->name);
        for (const struct dequant_field *f = type->fields; f->width_bytes != 0; f++) {
            cr_expect(f->width_bytes == 1 || f->width_bytes == 2 || f->width_bytes == 4 ||
                          f->width_bytes == 8,
                      "%s", type->name);
            n_bytes += (size_t)f->width_bytes * f->count;
        }
        cr_expect_eq(n_bytes, dequant_stride_bytes(type), "%s", type->name);
    }
}

static void check_swap(const struct dequant_type *type, const struct expectation *e)
{
    size_t n_blocks = blocks_for(e);
    size_t n_bytes = n_blocks * stride_of(e);
    uint64_t hash;

    dequant_swap_blocks(type, blocks, swapped_blocks, n_blocks);
    hash = fnv1a(swapped_blocks, n_bytes);
    cr_expect_eq(hash, e->swapped, "%s: hash %#018llx", type->name, (unsigned long long)hash);

    /* Swap back to an odd address, and check the bytes around the result. */
    memset(moved_blocks, 0x5a, sizeof(moved_blocks));
    dequant_swap_blocks(type, swapped_blocks, moved_blocks + 1, n_blocks);
    cr_expect_eq(memcmp(moved_blocks + 1, blocks, n_bytes), 0, "%s", type->name);
    cr_expect_eq(moved_blocks[0], 0x5a, "%s", type->name);
    cr_expect_eq(moved_blocks[1 + n_bytes], 0x5a, "%s", type->name);

    dequant_swap_blocks(type, blocks, moved_blocks, 0);
    cr_expect_eq(moved_blocks[0], 0x5a, "%s", type->name);
}

Test(dequant, swap_is_by_field_and_reversible)
{
    for_each_decoder(check_swap);
}
