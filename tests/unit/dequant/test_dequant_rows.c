/* Sizes of rows, and the bytes that hold given elements, for every type. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "tests/unit/dequant/random_blocks.h"

/* Size of the tensors below: blocks per row, and groups of rows. */
enum { ROW_BLOCKS = 3, GROUPS = 3 };

/* The sizes of BitNet's ggml_nbytes(). */
Test(dequant_rows, sizes_of_tl2)
{
    const struct dequant_type *tl2 = dequant_candidate_by_name(39, "TL2");
    uint64_t n_bytes = 42;

    cr_assert_eq(dequant_rows_bytes(tl2, 255, 1, &n_bytes), -EINVAL);
    cr_assert_eq(dequant_rows_bytes(tl2, 1ull << 32, 1ull << 32, &n_bytes), -EOVERFLOW);
    cr_assert_eq(dequant_rows_bytes(tl2, 256, 1ull << 56, &n_bytes), -EOVERFLOW);
    cr_assert_eq(n_bytes, 42u);
    cr_assert_eq(dequant_rows_bytes(tl2, 3200, 8640, &n_bytes), 0);
    cr_expect_eq(n_bytes, 5299200u + 552960 + 32);
    cr_assert_eq(dequant_rows_bytes(tl2, 256, 1, &n_bytes), 0);
    cr_expect_eq(n_bytes, 96u);
}

static void expect_bytes(const char *name, uint64_t row_elements, uint64_t n_rows,
                         uint64_t expected)
{
    uint64_t n_bytes = 0;

    for (size_t i = 0; i < dequant_type_count(); i++) {
        if (strcmp(dequant_type_at(i)->name, name) != 0)
            continue;
        cr_assert_eq(dequant_rows_bytes(dequant_type_at(i), row_elements, n_rows, &n_bytes), 0);
        cr_expect_eq(n_bytes, expected, "%s: %llu bytes", name, (unsigned long long)n_bytes);
        return;
    }
    cr_assert_fail("no type %s", name);
}

Test(dequant_rows, sizes)
{
    expect_bytes("F32", 1, 0, 0);
    expect_bytes("F32", 3, 5, 60);
    expect_bytes("Q4_K", 512, 7, 7 * 288);
    expect_bytes("IQ4_KS", 1024, 16, 16 * (4 + 4 * 136));
    expect_bytes("IQ4_NL_R4", 1024, 16, 16 * 576);
    expect_bytes("IQ4_KS_R4", 1024, 16, 16 * (4 + 4 * 136));
    expect_bytes("IQ4_KS", 0, 2, 8);
    expect_bytes("IQ2_KS", 1024, 16, 16 * (2 + 4 * 70));
    expect_bytes("Q8_KV", 1024, 16, 16 * (8 + 1024));
    expect_bytes("I2_S", 1024, 16, 16 * 256 + 32);
    expect_bytes("I8", INT64_MAX, 1, INT64_MAX);
    expect_bytes("F64", 1ull << 57, 7, 7ull << 60);
}

static void expect_no_bytes(uint32_t id, uint64_t row_elements, uint64_t n_rows, int code)
{
    uint64_t n_bytes = 42;

    cr_expect_eq(dequant_rows_bytes(dequant_type_by_id(id), row_elements, n_rows, &n_bytes), code,
                 "type %u, %llu rows of %llu", id, (unsigned long long)n_rows,
                 (unsigned long long)row_elements);
    cr_expect_eq(n_bytes, 42u);
}

Test(dequant_rows, invalid_sizes)
{
    expect_no_bytes(12, 255, 1, -EINVAL);
    expect_no_bytes(12, 257, 1, -EINVAL);
    expect_no_bytes(344, 256, 3, -EINVAL);
    expect_no_bytes(344, 256, 1, -EINVAL);
    expect_no_bytes(24, 1ull << 63, 1, -EOVERFLOW);
    expect_no_bytes(28, 1ull << 60, 1, -EOVERFLOW);
    expect_no_bytes(28, 1ull << 61, 1, -EOVERFLOW);
    expect_no_bytes(28, 1ull << 30, 1ull << 31, -EOVERFLOW);
    expect_no_bytes(144, UINT64_MAX - 255, 1, -EOVERFLOW);
    expect_no_bytes(144, 256, 1ull << 60, -EOVERFLOW);
    expect_no_bytes(9, UINT64_MAX - 31, 1, -EOVERFLOW);
    expect_no_bytes(36, 64, 2, -EINVAL);
    expect_no_bytes(36, 4ull << 30, 1ull << 33, -EOVERFLOW);
}

/* A tensor and its values, decoded row by row. */
struct sample {
    const struct dequant_type *type;
    uint64_t row_elements, n_elements, n_bytes;
    uint8_t *data;
    float *values;
};

static struct dequant_shape shape_of(const struct sample *s)
{
    return (struct dequant_shape){s->row_elements, s->n_elements};
}

static struct sample make_sample(const struct dequant_type *type)
{
    const size_t n_rows = (size_t)GROUPS * type->interleave_rows;
    struct sample s = {.type = type, .row_elements = (uint64_t)ROW_BLOCKS * type->block_elements};
    const uint8_t *group;
    size_t group_headers_bytes;

    s.n_elements = n_rows * s.row_elements;
    cr_assert_eq(dequant_rows_bytes(type, s.row_elements, n_rows, &s.n_bytes), 0);
    s.data = malloc(MAX_BYTES);
    s.values = malloc(s.n_elements * sizeof *s.values);
    cr_assert(s.data && s.values);
    make_data(expectation_of(type), s.data, s.row_elements, n_rows);
    group_headers_bytes = (size_t)type->row_header_bytes * type->interleave_rows;
    group = s.data;
    for (size_t row = 0; row < n_rows; row++) {
        const uint32_t index = (uint32_t)(row % type->interleave_rows);
        const uint8_t *headers =
            type->tail_bytes > 0 ? s.data + s.n_bytes - type->tail_bytes : group;

        type->decode[DEQUANT_SET_scalar](group + group_headers_bytes,
                                         s.values + row * s.row_elements, ROW_BLOCKS,
                                         (struct dequant_row){headers, index});
        if (index + 1 == type->interleave_rows)
            group += group_headers_bytes + ROW_BLOCKS * dequant_stride_bytes(type);
    }
    cr_assert_eq((size_t)(group - s.data) + type->tail_bytes, s.n_bytes, "%s", type->name);
    return s;
}

/*
 * Decode elements `first` to `end` in spans of at most max_bytes. Each span is decoded from a copy
 * of only its bytes.
 */
static void check_spans(const struct sample *s, uint64_t first, uint64_t end, uint64_t max_bytes)
{
    const size_t stride_bytes = dequant_stride_bytes(s->type);
    const bool has_rows = dequant_has_row_layout(s->type);

    while (first < end) {
        const struct dequant_span span =
            dequant_span_of(s->type, shape_of(s), first, end, max_bytes);
        const uint64_t n_elements = span.n_blocks * s->type->block_elements;
        uint8_t *headers = malloc(span.headers_bytes + 1), *blocks = malloc(span.blocks_bytes);
        float *out = malloc(n_elements * sizeof *out);

        cr_assert(headers && blocks && out);
        cr_assert_gt(span.n_blocks, 0u);
        cr_assert_eq(span.blocks_bytes, span.n_blocks * stride_bytes);
        cr_assert(span.n_blocks == 1 || span.blocks_bytes <= max_bytes);
        cr_assert_leq(span.first_element, first);
        cr_assert_gt(span.first_element + n_elements, first);
        cr_assert_lt(span.first_element + n_elements, end + s->type->block_elements);
        cr_assert(!has_rows || span.first_element / s->row_elements ==
                                   (span.first_element + n_elements - 1) / s->row_elements);
        cr_assert_leq(span.blocks_offset + span.blocks_bytes, s->n_bytes);
        cr_assert_leq(span.headers_offset + span.headers_bytes, s->n_bytes);
        memcpy(headers, s->data + span.headers_offset, span.headers_bytes);
        memcpy(blocks, s->data + span.blocks_offset, span.blocks_bytes);
        dequant_decode_row(s->type, (struct dequant_row){headers, span.row_index}, blocks, out,
                           span.n_blocks);
        cr_assert_eq(memcmp(out, s->values + span.first_element, n_elements * sizeof *out), 0,
                     "%s: elements from %llu", s->type->name,
                     (unsigned long long)span.first_element);
        first = span.first_element + n_elements;
        free(headers);
        free(blocks);
        free(out);
    }
}

Test(dequant_rows, spans_contain_their_elements)
{
    for (size_t i = 0; i < n_expectations; i++) {
        uint64_t state = i;
        struct sample s;

        if (!dequant_is_decodable(dequant_type_at(i)))
            continue;
        s = make_sample(dequant_type_at(i));
        check_spans(&s, 0, s.n_elements, UINT64_MAX);
        check_spans(&s, 0, s.n_elements, 1);
        for (int round = 0; round < 300; round++) {
            const uint64_t first = next_random(&state) % s.n_elements;
            const uint64_t end = first + 1 + next_random(&state) % (s.n_elements - first);

            check_spans(&s, first, end, next_random(&state) % 5000);
        }
        free(s.data);
        free(s.values);
    }
}

Test(dequant_rows, any_range_of_blocks)
{
    static float out[GROUPS * ROW_BLOCKS * 16 * 256];

    for (size_t i = 0; i < n_expectations; i++) {
        const struct dequant_type *type = dequant_type_at(i);
        struct sample s;

        if (!dequant_is_decodable(type))
            continue;
        s = make_sample(type);
        for (uint64_t first = 0; first < s.n_elements; first += type->block_elements) {
            for (uint64_t n = 0; n <= s.n_elements - first; n += type->block_elements) {
                dequant_decode_elements(type, shape_of(&s), s.data, first, n, out);
                cr_assert_eq(memcmp(out, s.values + first, n * sizeof *out), 0,
                             "%s: %llu elements from %llu", type->name, (unsigned long long)n,
                             (unsigned long long)first);
            }
        }
        free(s.data);
        free(s.values);
    }
}
