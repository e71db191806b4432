#include "tests/kernels/check_kernels.h"

#include "dequant/kernels.h"
#include "dequant/products.h"
#include "tests/kernels/fenced.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/unit/dequant/random_blocks.h"

#include <math.h>
#include <string.h>

enum { MOST_PANELS = 3, MOST_COLUMNS = 17 };

static uint8_t blocks[MAX_BYTES];
static struct dequant_panel expected[MOST_PANELS], got[MOST_PANELS];

static float random_float(uint64_t *state)
{
    return (float)((double)(next_random(state) >> 11) * 0x1p-52 - 1);
}

/* Return true if the floats have the same bits or are both NaN. */
static bool are_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i])))
            return false;
    }
    return true;
}

/* Compare the parts of a panel that the type uses. */
static bool are_same_panels(const struct dequant_product *product, const struct dequant_panel *a,
                            const struct dequant_panel *b)
{
    const size_t n_spans = DEQUANT_PANEL_ELEMENTS / product->form.span_elements;
    const size_t n_groups = DEQUANT_PANEL_ELEMENTS / product->form.group_elements;
    const bool has_scales = product->form.span_elements == DEQUANT_PANEL_ELEMENTS;
    const bool has_mins = has_scales && (product->form.has_mins || product->form.zero > 0);

    return memcmp(a->q, b->q, sizeof a->q) == 0 &&
           (!has_scales || memcmp(a->scales, b->scales, n_groups * sizeof a->scales[0]) == 0) &&
           (!has_mins || memcmp(a->mins, b->mins, n_groups / 2 * sizeof a->mins[0]) == 0) &&
           are_same(a->d[0], b->d[0], n_spans * DEQUANT_PANEL_ROWS) &&
           (!product->form.has_mins || are_same(a->m[0], b->m[0], n_spans * DEQUANT_PANEL_ROWS));
}

/* By panel, and in it by column. */
static struct dequant_activations columns[MOST_PANELS][MOST_COLUMNS];

static void make_columns(const struct dequant_product *product, bool is_extreme)
{
    float x[MOST_PANELS * DEQUANT_PANEL_ELEMENTS];
    uint64_t state = 5;

    for (size_t c = 0; c < MOST_COLUMNS; c++) {
        for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
            x[i] = random_float(&state);
            if (is_extreme)
                x[i] = c % 3 == 0 ? 1.0F : c % 3 == 1 ? -1.0F : copysignf(1, x[i]);
        }
        reference_quantize_column(&product->form, x, sizeof x / sizeof *x, &columns[0][c],
                                  MOST_COLUMNS);
    }
}

/*
 * Multiply rows by a column, which gives what `expected`, the panels unpacked from them, gives with
 * the reference.
 */
static bool multiplies_column_alike(const struct dequant_type *type, const uint8_t *rows,
                                    size_t stride, size_t n_rows, size_t n_elements)
{
    const size_t n_panels = dequant_activations_count(n_elements);
    float good[1][DEQUANT_PANEL_ROWS], bad[1][DEQUANT_PANEL_ROWS];
    struct dequant_activations column[MOST_PANELS];

    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++)
        good[0][r] = bad[0][r] = (float)r;
    for (size_t i = 0; i < n_panels; i++) {
        column[i] = columns[i][0];
        reference_multiply(&type->product->form, &expected[i], &column[i], 1, good);
    }
    dequant_multiply_column(type, rows, stride, n_rows, n_elements, column, bad[0]);
    return are_same(good[0], bad[0], n_rows);
}

/* Unpack n_rows rows of n_elements by the set and the reference, at the end of the fenced memory.
 */
static bool unpacks_alike(const struct dequant_type *type, const struct fenced *memory,
                          const uint8_t *from, size_t n_rows, size_t n_elements, size_t padding)
{
    const size_t row_bytes = n_elements / type->block_elements * type->block_bytes;
    const size_t stride = row_bytes + padding;
    const size_t n_panels = dequant_activations_count(n_elements);
    uint8_t *rows = memory->data + memory->n_bytes - ((n_rows - 1) * stride + row_bytes);
    bool is_good = true;

    for (size_t r = 0; r < n_rows; r++)
        memcpy(rows + r * stride, from + r * row_bytes, row_bytes);
    memset(expected, 0x5a, sizeof expected);
    memset(got, 0xa5, sizeof got);
    for (size_t i = 0; i < n_panels; i++) {
        reference_unpack(type, rows, stride, n_rows, n_elements, i, &expected[i]);
        dequant_unpack(type, rows, stride, n_rows, n_elements, i, &got[i]);
        is_good &= are_same_panels(type->product, &expected[i], &got[i]);
    }
    return is_good & multiplies_column_alike(type, rows, stride, n_rows, n_elements);
}

static bool check_unpack(const struct dequant_type *type, const struct fenced *memory)
{
    const struct expectation *e = expectation_of(type);
    const size_t panel_bytes = DEQUANT_PANEL_ELEMENTS / type->block_elements * type->block_bytes;
    const size_t n_bytes = blocks_for(e) * stride_of(e);
    uint64_t state = type->id;
    bool is_good = true;

    make_columns(type->product, false);
    make_blocks(e, blocks);
    for (size_t at = 0; at + 16 * panel_bytes <= n_bytes; at += 16 * panel_bytes)
        is_good &= unpacks_alike(type, memory, blocks + at, 16, 256, at % 35);
    /* Matrices of every height that end within a panel. */
    for (size_t n_rows = 1; n_rows <= 16; n_rows++) {
        for (size_t n = type->block_elements; n <= MOST_PANELS * 256; n += type->block_elements)
            is_good &= unpacks_alike(type, memory, blocks + n, n_rows, n, n_rows % 3);
    }
    /* Any bits, also scales that are no finite numbers. */
    for (size_t round = 0; round < 200; round++) {
        for (size_t i = 0; i < 16 * panel_bytes; i++)
            blocks[i] = (uint8_t)(next_random(&state) >> 40);
        is_good &= unpacks_alike(type, memory, blocks, 16, 256, 0);
    }
    return is_good;
}

/* Multiply panels by 1 to MOST_COLUMNS columns by the set and the reference. */
static bool multiplies_alike(const struct dequant_product *product)
{
    static float good[MOST_COLUMNS][DEQUANT_PANEL_ROWS], bad[MOST_COLUMNS][DEQUANT_PANEL_ROWS];
    bool is_good = true;

    for (size_t n = 1; n <= MOST_COLUMNS; n++) {
        const size_t i = n % MOST_PANELS;

        for (size_t c = 0; c < n; c++) {
            for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++)
                good[c][r] = bad[c][r] = (float)(c * r);
        }
        reference_multiply(&product->form, &expected[i], columns[i], n, good);
        dequant_multiply(&product->form, &expected[i], columns[i], n, bad);
        is_good &= are_same(good[0], bad[0], n * DEQUANT_PANEL_ROWS);
    }
    return is_good;
}

static bool check_multiply(const struct dequant_type *type)
{
    const struct dequant_product *product = type->product;
    const struct expectation *e = expectation_of(type);
    const size_t row_bytes =
        MOST_PANELS * DEQUANT_PANEL_ELEMENTS / type->block_elements * type->block_bytes;
    uint64_t state = 3;
    bool is_good;

    make_blocks(e, blocks);
    for (size_t i = 0; i < MOST_PANELS; i++)
        reference_unpack(type, blocks, row_bytes, 16, MOST_PANELS * DEQUANT_PANEL_ELEMENTS, i,
                         &expected[i]);
    make_columns(product, false);
    is_good = multiplies_alike(product);
    /* The greatest integers, in lanes where accumulators of few bits fill up. */
    make_columns(product, true);
    for (size_t i = 0; i < MOST_PANELS; i++) {
        for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
            for (size_t k = 0; k < DEQUANT_PANEL_ELEMENTS; k++)
                expected[i].q[k / 4][r][k % 4] =
                    r % 3 == 0 || (r % 3 == 1 && next_random(&state) % 2) ? product->form.greatest
                                                                          : 0;
        }
    }
    return is_good & multiplies_alike(product);
}

/* Quantize by the set and the reference. */
static bool quantizes_alike(const struct dequant_product *product,
                            const float x[DEQUANT_PANEL_ELEMENTS], size_t n)
{
    struct dequant_activations good, bad;

    memset(&good, 0x5a, sizeof good);
    memset(&bad, 0xa5, sizeof bad);
    reference_quantize_column(&product->form, x, n, &good, 1);
    dequant_quantize(&product->form, x, n, &bad, 1);
    return memcmp(good.q, bad.q, sizeof good.q) == 0 &&
           memcmp(good.sums_16, bad.sums_16, sizeof good.sums_16) == 0 &&
           memcmp(good.sums_32, bad.sums_32, sizeof good.sums_32) == 0 &&
           are_same(good.scales, bad.scales, sizeof good.scales / sizeof(float));
}

/* Compare blocks of every magnitude, with ties, zeros and numbers that are not finite. */
static bool check_quantize(const struct dequant_product *product, const struct fenced *memory)
{
    static const float odd[] = {NAN, -NAN, INFINITY, -INFINITY, 0.0F, -0.0F, 3e38F, 1e-30F, 1e-45F};
    uint64_t state = 11;
    bool is_good = true;

    for (size_t round = 0; round < 2000; round++) {
        const size_t n = round % 4 == 0 ? 1 + round % 256 : 256;
        float *x = (float *)(void *)(memory->data + memory->n_bytes) - n;
        const float scale = ldexpf(1, (int)(round % 280) - 150);

        for (size_t i = 0; i < n; i++) {
            x[i] = random_float(&state) * scale;
            /* Halves are ties, for the greatest magnitude is 127. */
            if (round % 3 == 0)
                x[i] = (float)((int)(next_random(&state) % 253) - 126) / 2;
        }
        if (round % 3 == 0)
            x[next_random(&state) % n] = 127;
        if (round % 5 == 0)
            x[next_random(&state) % n] = odd[round / 5 % (sizeof odd / sizeof *odd)];
        if (round % 7 == 0)
            memset(x, 0, n / 2 * sizeof *x);
        is_good &= quantizes_alike(product, x, n);
    }
    return is_good;
}

void check_products(const char *set)
{
    const struct fenced memory = make_fenced(MAX_BYTES);
    char what[100];

    dequant_choose_kernels(set);
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        if (!type->product)
            continue;
        count(dequant_multiplies_integers(type), set, type->name);
        snprintf(what, sizeof what, "%s: panels", type->name);
        count(check_unpack(type, &memory), set, what);
        snprintf(what, sizeof what, "%s: integer products", type->name);
        count(check_multiply(type), set, what);
        snprintf(what, sizeof what, "%s: quantized activations", type->name);
        count(check_quantize(type->product, &memory), set, what);
    }
    dequant_choose_kernels("scalar");
}
