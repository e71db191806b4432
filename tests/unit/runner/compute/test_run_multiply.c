/* The matrix product of the runner, with weights of every type. */
#include "contrib/runner/compute/multiply.h"
#include "contrib/runner/compute/thread_pool.h"
#include "dequant/kernels.h"
#include "tests/unit/dequant/random_blocks.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 5 };

static void multiply(const struct run_tensor *weights, const float *x, size_t n, float *out)
{
    run_multiply(&(struct run_product){*weights, out}, 1, x, n);
}

/* Replace values that real weights do not have: infinities and scales of 2^127. */
static void tame_numbers(const struct dequant_type *type, uint8_t *blocks)
{
    uint64_t state = type->id;

    for (size_t i = 0; strncmp(type->name, "MXFP4", 5) == 0 && i * 32 < ELEMENTS; i++) {
        uint8_t *exponents = blocks + i * dequant_stride_bytes(type);

        for (size_t row = 0; row < type->interleave_rows; row++)
            exponents[row] = (uint8_t)(120 + (i + row) % 16);
    }
    for (size_t i = 0; type->block_elements <= 2 && i < ELEMENTS * type->interleave_rows; i++) {
        const float value = (float)(next_random(&state) >> 40) / (float)(1 << 23) - 1;
        const double wide = (double)value;
        uint32_t bits;

        memcpy(&bits, &value, sizeof bits);
        if (strcmp(type->name, "F32") == 0)
            memcpy(blocks + 4 * i, &value, 4);
        else if (strncmp(type->name, "BF16", 4) == 0)
            memcpy(blocks + 2 * i, (const uint8_t *)&bits + 2, 2);
        else if (strcmp(type->name, "F64") == 0)
            memcpy(blocks + 8 * i, &wide, 8);
        else if (strcmp(type->name, "F16") == 0)
            blocks[2 * i + 1] &= 0xbf; /* below 2 */
    }
}

/* Compute the product of the decoded weights, and the sums of the absolute terms. */
static void reference(const float *weights, size_t rows, size_t width, const float *x, double *out,
                      double *sizes)
{
    for (size_t t = 0; t < N_TOKENS; t++) {
        for (size_t r = 0; r < rows; r++) {
            double sum = 0, size = 0;

            for (size_t i = 0; i < width; i++) {
                const double product = (double)weights[r * width + i] * (double)x[t * width + i];

                sum += product;
                size += fabs(product);
            }
            out[t * rows + r] = sum;
            sizes[t * rows + r] = size;
        }
    }
}

static void check_alone(const struct run_tensor *weights, const float *x, const float *product)
{
    const size_t rows = run_tensor_rows(weights), width = weights->ne[0];
    float *alone = numbers_alloc(rows, sizeof *alone);

    for (size_t t = 0; t < N_TOKENS; t++) {
        multiply(weights, x + t * width, 1, alone);
        numbers_expect_same("a token alone", alone, product + t * rows, rows);
    }
    free(alone);
}

static void check_slices(const struct run_tensor *weights, const float *x, const float *product)
{
    const size_t rows = run_tensor_rows(weights);
    float *part = numbers_alloc(rows, sizeof *part);

    for (size_t first = 0; first < rows; first += 3) {
        const size_t n = rows - first < 3 ? rows - first : 3;
        const struct run_tensor slice = run_tensor_slice(weights, first, n);

        cr_assert_eq(run_tensor_rows(&slice), n);
        multiply(&slice, x, 1, part);
        numbers_expect_same("a slice", part, product + first, n);
    }
    free(part);
}

static double magnitude(const float *row, size_t width)
{
    double sum = 0;

    for (size_t i = 0; i < width; i++)
        sum += fabs((double)row[i]);
    return sum;
}

static void check_product(const struct dequant_type *type, const uint8_t *blocks, size_t rows,
                          size_t width)
{
    const struct run_tensor weights = {.name = type->name,
                                       .type = type,
                                       .ne = {width, rows, 1, 1},
                                       .data = blocks,
                                       .stored_rows = rows};
    uint64_t state = rows;
    float *x = numbers_make(&state, 1, N_TOKENS * width);
    float *decoded = numbers_alloc(rows * width, sizeof *decoded);
    float *product = numbers_make(&state, 1, N_TOKENS * rows);
    double *expected = numbers_alloc(N_TOKENS * rows, sizeof *expected);
    double *sizes = numbers_alloc(N_TOKENS * rows, sizeof *sizes);

    dequant_decode_elements(type, (struct dequant_shape){width, rows * width}, blocks, 0,
                            rows * width, decoded);
    reference(decoded, rows, width, x, expected, sizes);
    run_multiply_in_floats(true);
    multiply(&weights, x, N_TOKENS, product);
    for (size_t i = 0; i < N_TOKENS * rows; i++)
        cr_assert(fabs((double)product[i] - expected[i]) <= 1e-6 * sizes[i],
                  "%s of era %u, %zu rows of %zu: number %zu is %.9g, expected %.9g", type->name,
                  type->era, rows, width, i, (double)product[i], expected[i]);
    check_alone(&weights, x, product);
    check_slices(&weights, x, product);

    run_multiply_in_floats(false);
    multiply(&weights, x, N_TOKENS, product);
    for (size_t i = 0; i < N_TOKENS * rows; i++) {
        /* Activations, at most 1, are rounded to multiples of 1/127 or less. */
        const double limit = 1.001 / 254 * magnitude(decoded + i % rows * width, width);

        cr_assert(fabs((double)product[i] - expected[i]) <= limit + 1e-6 * sizes[i],
                  "%s of era %u, %zu rows of %zu: number %zu is %.9g in integers, expected %.9g",
                  type->name, type->era, rows, width, i, (double)product[i], expected[i]);
    }
    check_alone(&weights, x, product);
    check_slices(&weights, x, product);
    free(x);
    free(decoded);
    free(product);
    free(expected);
    free(sizes);
}

static void check_type(const struct dequant_type *type)
{
    static const size_t n_rows[] = {1, 8, 19};
    const size_t block = type->block_elements;
    const size_t widths[] = {3 * block, 1024 + block};
    const struct expectation *e = expectation_of(type);
    uint8_t *blocks = numbers_alloc(MAX_BYTES, 1);

    for (size_t w = 0; w < COUNT(widths); w++) {
        for (size_t r = 0; r < COUNT(n_rows); r++) {
            const size_t rows = n_rows[r] * type->interleave_rows;

            make_data(e, blocks, widths[w], rows);
            tame_numbers(type, blocks);
            check_product(type, blocks, rows, widths[w]);
        }
    }
    free(blocks);
}

TestSuite(run_multiply, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_multiply, weights_of_every_type)
{
    size_t n_types = 0;

    for (size_t set = 0; dequant_kernel_set_at(set); set++) {
        const struct dequant_kernel_set *kernels = dequant_kernel_set_at(set);

        if (!kernels->is_supported())
            continue;
        cr_assert_eq(dequant_choose_kernels(kernels->name), 0);
        for (size_t i = 0; i < dequant_row_count(); i++) {
            if (!dequant_is_decodable(dequant_type_at(i)))
                continue;
            check_type(dequant_type_at(i));
            n_types++;
        }
    }
    cr_expect_geq(n_types, 46u);
}

Test(run_multiply, matrices_of_a_tensor)
{
    uint64_t state = 4;
    float *values = numbers_make(&state, 1, 6 * 5 * 4), *x = numbers_make(&state, 1, 6);
    const struct run_tensor whole = {.type = dequant_type_by_id(DEQUANT_F32),
                                     .ne = {6, 5, 2, 2},
                                     .data = (const uint8_t *)values};
    float product[20], part[5], row[6];

    cr_assert_eq(run_tensor_rows(&whole), 20u);
    multiply(&whole, x, 1, product);
    for (size_t matrix = 0; matrix < 4; matrix++) {
        const struct run_tensor slice = run_tensor_slice(&whole, matrix * 5, 5);

        multiply(&slice, x, 1, part);
        numbers_expect_same("a matrix", part, product + matrix * 5, 5);
    }
    run_tensor_decode_row(&whole, 17, row);
    numbers_expect_same("row", row, values + 17 * 6, 6);
    free(values);
    free(x);
}

/* Activations are quantized once for some of these, and not at all for others. */
Test(run_multiply, products_of_one_call_are_those_of_many)
{
    enum { WIDTH = 512, ROWS = 40, TYPES = 6 };
    static const char *const names[TYPES] = {"Q4_K", "Q6_K", "Q4_0", "F32", "Q8_0", "Q5_K"};
    struct run_product products[TYPES];
    uint64_t state = 1;
    float *x = numbers_make(&state, 1, N_TOKENS * WIDTH);
    float *alone = numbers_alloc(N_TOKENS * ROWS, sizeof *alone);
    static uint8_t blocks[TYPES][ROWS * WIDTH * 4];

    cr_assert_eq(dequant_choose_kernels(NULL), 0);
    for (size_t i = 0; i < TYPES; i++) {
        const struct dequant_type *type = NULL;

        for (size_t k = 0; !type && k < dequant_type_count(); k++)
            if (strcmp(dequant_type_at(k)->name, names[i]) == 0)
                type = dequant_type_at(k);
        for (size_t k = 0; k < sizeof blocks[i]; k++)
            blocks[i][k] = (uint8_t)(next_random(&state) >> 40) & 0x3b;
        products[i] = (struct run_product){
            {.name = names[i], .type = type, .ne = {WIDTH, ROWS, 1, 1}, .data = blocks[i]},
            numbers_alloc(N_TOKENS * ROWS, sizeof(float))};
    }
    for (size_t n = 1; n <= N_TOKENS; n += N_TOKENS - 1) {
        run_multiply(products, TYPES, x, n);
        for (size_t i = 0; i < TYPES; i++) {
            multiply(&products[i].weights, x, n, alone);
            cr_assert_arr_eq(products[i].out, alone, n * ROWS * sizeof *alone, "%s", names[i]);
        }
    }
    for (size_t i = 0; i < TYPES; i++)
        free(products[i].out);
    free(alone);
    free(x);
}
