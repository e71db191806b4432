/*
 * Integer products by the best kernels for this CPU, compared with decoded weights in double.
 * tests/kernels/ compares all kernels with the definition, bit for bit.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/kernels.h"
#include "dequant/products.h"
#include "tests/unit/dequant/random_blocks.h"

enum {
    MXFP4 = 39,
    N_PANELS = 2,
    WIDTH = N_PANELS * DEQUANT_PANEL_ELEMENTS,
    ROWS = DEQUANT_PANEL_ROWS
};

static uint8_t blocks[MAX_BYTES];
static float weights[ROWS][WIDTH];
static struct dequant_panel panels[N_PANELS];
static struct dequant_activations activations[N_PANELS];
static float sums[1][ROWS];

static size_t row_bytes_of(const struct dequant_type *type)
{
    return WIDTH / type->block_elements * type->block_bytes;
}

/* Unpack and decode ROWS rows that begin at block `first` of `blocks`. */
static void load_rows(const struct dequant_type *type, size_t first)
{
    const uint8_t *rows = blocks + first * type->block_bytes;

    for (size_t i = 0; i < N_PANELS; i++)
        dequant_unpack(type, rows, row_bytes_of(type), ROWS, WIDTH, i, &panels[i]);
    for (size_t r = 0; r < ROWS; r++)
        dequant_decode(type, rows + r * row_bytes_of(type), weights[r],
                       WIDTH / type->block_elements);
}

/* Call `test` for every type with a product, after filling `blocks`. */
static void for_each_product(void (*test)(const struct dequant_type *))
{
    size_t n_products = 0;

    cr_assert_eq(dequant_choose_kernels(NULL), 0);
    if (dequant_product_set() == DEQUANT_SET_scalar)
        cr_skip("this CPU multiplies in floats");
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        if (!type->product)
            continue;
        cr_expect(dequant_multiplies_integers(type), "%s", type->name);
        make_blocks(expectation_of(type), blocks);
        /* Scales whose values and products are floats. */
        for (size_t b = 0; type->id == MXFP4 && b < ELEMENTS / type->block_elements; b++)
            blocks[b * type->block_bytes] = (uint8_t)(100 + blocks[b * type->block_bytes] % 50);
        load_rows(type, 0);
        test(type);
        n_products++;
    }
    cr_assert_gt(n_products, 0);
}

static void multiply(const struct dequant_type *type, const float *x)
{
    dequant_quantize(&type->product->form, x, WIDTH, activations, 1);
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < N_PANELS; i++)
        dequant_multiply(&type->product->form, &panels[i], &activations[i], 1, sums);
}

/* The value of element i of row r in a panel; its terms' magnitudes are added to *magnitude. */
static double panel_value(const struct dequant_product *product, const struct dequant_panel *panel,
                          size_t r, size_t i, double *magnitude)
{
    const bool has_scales = product->form.span_elements == DEQUANT_PANEL_ELEMENTS;
    const size_t span = i / product->form.span_elements, group = i / product->form.group_elements;
    const int q = panel->q[i / 4][r][i % 4] - product->form.zero;
    const int s = has_scales ? panel->scales[group][r][0] : 1;
    const int t = has_scales && product->form.has_mins ? panel->mins[group / 2][r][group % 2] : 1;
    const double value = (double)panel->d[span][r] * s * q;
    const double min = product->form.has_mins ? (double)panel->m[span][r] * t : 0;

    *magnitude = fabs(value) + fabs(min);
    return value + min;
}

static void check_panels(const struct dequant_type *type)
{
    const struct dequant_product *product = type->product;
    const size_t n_blocks = ROWS * WIDTH / type->block_elements;
    const bool has_scales = product->form.span_elements == DEQUANT_PANEL_ELEMENTS;

    for (size_t first = 0; first + n_blocks <= ELEMENTS / type->block_elements; first += n_blocks) {
        load_rows(type, first);
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t i = 0; i < WIDTH; i++) {
                const struct dequant_panel *panel = &panels[i / DEQUANT_PANEL_ELEMENTS];
                const size_t at = i % DEQUANT_PANEL_ELEMENTS;
                const size_t group = at / product->form.group_elements;
                double magnitude;
                const double value = panel_value(product, panel, r, at, &magnitude);

                cr_assert_float_eq(value, (double)weights[r][i], magnitude * 0x1p-22 + 0x1p-140,
                                   "%s: element %zu of row %zu: %g, not %g", type->name, i, r,
                                   value, (double)weights[r][i]);
                cr_assert_leq(panel->q[at / 4][r][at % 4], product->form.greatest, "%s",
                              type->name);
                if (!has_scales)
                    continue;
                cr_assert_eq(panel->scales[group][r][0], panel->scales[group][r][1], "%s",
                             type->name);
                if (!product->form.has_mins && product->form.zero > 0)
                    cr_assert_eq(panel->mins[group / 2][r][group % 2],
                                 panel->scales[group][r][0] * product->form.zero, "%s", type->name);
            }
        }
    }
}

Test(dequant_products, panels_hold_the_decoded_values)
{
    for_each_product(check_panels);
}

static void fill(float *x, float scale)
{
    uint64_t state = 7;

    for (size_t i = 0; i < WIDTH; i++)
        x[i] = (float)((double)(next_random(&state) >> 11) * 0x1p-52 - 1) * scale;
}

/* The quantized activation i. */
static double activation(size_t i)
{
    const struct dequant_activations *block = &activations[i / DEQUANT_PANEL_ELEMENTS];
    const size_t at = i % DEQUANT_PANEL_ELEMENTS;

    return (double)block->scales[at / 32] * block->q[at];
}

static void check_sums(const struct dequant_type *type)
{
    float x[WIDTH];

    fill(x, 3);
    multiply(type, x);
    for (size_t i = 0; i < WIDTH; i++) {
        const float scale = activations[i / 256].scales[i % 256 / 32];

        cr_assert_float_eq(activation(i), (double)x[i], (double)scale * 0.50001, "%s", type->name);
    }
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0, magnitude = 0;

        for (size_t i = 0; i < WIDTH; i++) {
            sum += (double)weights[r][i] * activation(i);
            magnitude += fabs((double)weights[r][i] * activation(i));
        }
        cr_assert_float_eq((double)sums[0][r], sum, 1e-5 * magnitude + 1e-35,
                           "%s: row %zu: %g, not %g", type->name, r, (double)sums[0][r], sum);
    }
}

Test(dequant_products, sums_are_those_of_decoded_weights)
{
    for_each_product(check_sums);
}

static void check_odd_columns(const struct dequant_type *type)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    float x[WIDTH];

    for (size_t i = 0; i < WIDTH; i += 37) {
        fill(x, 1);
        x[i] = odd[i % 3];
        multiply(type, x);
        for (size_t r = 0; r < ROWS; r++)
            cr_assert(isnan(sums[0][r]), "%s: element %zu", type->name, i);
    }
    /* Zeros, and magnitudes whose reciprocal is infinite. */
    for (int exponent = -150; exponent < -99; exponent++) {
        fill(x, exponent == -150 ? 0 : ldexpf(1, exponent));
        multiply(type, x);
        for (size_t r = 0; r < ROWS; r++)
            cr_assert_eq(sums[0][r], 0, "%s: magnitude 2^%d", type->name, exponent);
    }
}

Test(dequant_products, odd_activations_show)
{
    for_each_product(check_odd_columns);
}

/* A scale that is NaN or infinite makes only the products of its row NaN or infinite. */
static void check_odd_scales(const struct dequant_type *type)
{
    static const uint16_t odd[2] = {0x7e00, 0x7c00};
    const struct expectation *e = expectation_of(type);
    const size_t odd_row = 5, last = WIDTH / type->block_elements - 1;
    uint8_t *row = blocks + odd_row * row_bytes_of(type);
    float x[WIDTH];

    if (e->scale == NO_SCALE || e->scale == F32_SCALE)
        return;
    fill(x, 1);
    set_scales(e, row + last * type->block_bytes, odd);
    load_rows(type, 0);
    multiply(type, x);
    for (size_t r = 0; r < ROWS; r++)
        cr_assert_eq(isfinite(sums[0][r]) != 0, r != odd_row, "%s: row %zu", type->name, r);
}

Test(dequant_products, odd_scales_show)
{
    for_each_product(check_odd_scales);
}

/* A tensor that does not fill its last panel: lanes and elements that it does not have count 0. */
static void check_rest(const struct dequant_type *type)
{
    const size_t n_rows = 3, n = WIDTH - type->block_elements;
    const size_t row_bytes = n / type->block_elements * type->block_bytes;
    float x[WIDTH];

    fill(x, 1);
    dequant_quantize(&type->product->form, x, n, activations, 1);
    memset(sums, 0, sizeof sums);
    for (size_t i = 0; i < dequant_activations_count(n); i++) {
        dequant_unpack(type, blocks, row_bytes, n_rows, n, i, &panels[i]);
        dequant_multiply(&type->product->form, &panels[i], &activations[i], 1, sums);
    }
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0, magnitude = 0;

        if (r < n_rows)
            dequant_decode(type, blocks + r * row_bytes, weights[r], n / type->block_elements);
        for (size_t i = 0; r < n_rows && i < n; i++) {
            sum += (double)weights[r][i] * activation(i);
            magnitude += fabs((double)weights[r][i] * activation(i));
        }
        cr_assert_float_eq((double)sums[0][r], sum, 1e-5 * magnitude, "%s: row %zu", type->name, r);
    }
}

Test(dequant_products, missing_rows_and_elements_count_nothing)
{
    for_each_product(check_rest);
}

/* Return true if /proc/cpuinfo lists the flag. */
static bool has_cpu_flag(const char *flag)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char *line = NULL;
    size_t room = 0;
    bool is_found = false;

    while (file && !is_found && getline(&line, &room, file) > 0)
        for (char *word = strtok(line, " \n"); word && !is_found; word = strtok(NULL, " \n"))
            is_found = strcmp(word, flag) == 0;
    free(line);
    if (file)
        fclose(file);
    return is_found;
}

/* AVX-512 multiplies bytes with VNNI, which the first CPUs lack; all other sets use their own. */
Test(dequant_products, the_set_for_products_fits_the_cpu)
{
    const struct dequant_kernel_set *set;

    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (dequant_choose_kernels(set->name) < 0)
            continue;
        if (strcmp(set->name, "avx512") == 0 && !has_cpu_flag("avx512_vnni"))
            cr_expect_str_eq(dequant_kernel_set_at(dequant_product_set())->name, "avx2");
        else
            cr_expect_eq(dequant_product_set(), i, "%s", set->name);
    }
}
