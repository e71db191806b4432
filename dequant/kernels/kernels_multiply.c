/*
 * Integer products of panels and columns in vectors whose lanes are rows. The loops are written
 * once for all types; where they are inlined, the number of columns and the form of the type are
 * constants. dequant/reference/multiply_panels.c computes the same.
 */
#include "dequant/kernels/lanes.h"
#include "dequant/products.h"

#include <math.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* The form of a type, of constants. */
struct form {
    bool has_scales;   /* integer scales */
    size_t group_size; /* elements that share a scale */
    size_t depth;      /* steps of four elements until an accumulator is full */
    bool is_wide;      /* integers above 127 */
};

static inline lanes four_of(const int8_t *q)
{
    return lanes_all((int32_t)simd_u32(q));
}

static inline lanes pair_of(const int16_t *sums)
{
    return lanes_all((int32_t)simd_u32(sums));
}

static inline const int16_t *sums_of(const struct dequant_activations *x, size_t group_size)
{
    return group_size == 16 ? x->sums_16 : x->sums_32;
}

/* Add the products of the group's elements to sums[c]. */
INLINE void add_group(const struct dequant_panel *panel, size_t row,
                      const struct dequant_activations *x, size_t x_stride, size_t n_columns,
                      const struct form *form, size_t group, lanes sums[LANES_COLUMNS])
{
    const size_t n_steps = form->group_size / 4;
    lanes accumulators[LANES_COLUMNS];
    lanes scale = lanes_all(0);

    if (form->has_scales)
        scale = lanes_load(panel->scales[group][row]);
#pragma GCC unroll 8
    for (size_t step = 0; step < n_steps; step++) {
        const size_t i = group * n_steps + step;
        const lanes q = lanes_load(panel->q[i][row]);

#pragma GCC unroll 8
        for (size_t c = 0; c < n_columns; c++) {
            const lanes four = four_of(x[c * x_stride].q + 4 * i);

            if (step % form->depth == 0)
                accumulators[c] = lanes_all(0);
            accumulators[c] = form->is_wide ? lanes_dot_wide(accumulators[c], q, four)
                                            : lanes_dot(accumulators[c], q, four);
            if (step % form->depth + 1 == form->depth || step + 1 == n_steps)
                sums[c] = form->has_scales ? lanes_add_scaled(sums[c], accumulators[c], scale)
                                           : lanes_add_accumulator(sums[c], accumulators[c]);
        }
    }
}

/* Add the products of the part of a panel that shares dx. */
INLINE void add_scaled_part(const struct dequant_product *product,
                            const struct dequant_panel *panel, size_t row, size_t part,
                            const struct dequant_activations *x, size_t x_stride, size_t n_columns,
                            const struct form *form, lanes_floats totals[LANES_COLUMNS])
{
    const size_t n_groups = DEQUANT_SCALED_ELEMENTS / form->group_size, first = part * n_groups;
    const bool has_zero = product->zero > 0 && !(form->is_wide && LANES_SIGN_WIDE);
    const lanes_floats d = lanes_load_floats(panel->d[0] + row);
    lanes sums[LANES_COLUMNS], mins[LANES_COLUMNS];

#pragma GCC unroll 8
    for (size_t c = 0; c < n_columns; c++)
        sums[c] = mins[c] = lanes_all(0);
    for (size_t group = first; group < first + n_groups; group++)
        add_group(panel, row, x, x_stride, n_columns, form, group, sums);
    if (has_zero || product->has_mins) {
        for (size_t group = first; group < first + n_groups; group += 2) {
            const lanes min = lanes_load(panel->mins[group / 2][row]);

#pragma GCC unroll 8
            for (size_t c = 0; c < n_columns; c++)
                mins[c] = lanes_dot_pairs(
                    mins[c], min, pair_of(sums_of(&x[c * x_stride], form->group_size) + group));
        }
    }
#pragma GCC unroll 8
    for (size_t c = 0; c < n_columns; c++) {
        const float x_scale = x[c * x_stride].scales[part * DEQUANT_SCALED_ELEMENTS / 32];

        if (has_zero)
            sums[c] = lanes_sub(sums[c], mins[c]);
        totals[c] = lanes_fused(lanes_scale(d, x_scale), lanes_to_floats(sums[c]), totals[c]);
        if (product->has_mins)
            totals[c] = lanes_fused(lanes_scale(lanes_load_floats(panel->m[0] + row), x_scale),
                                    lanes_to_floats(mins[c]), totals[c]);
    }
}

INLINE void add_panel_of_spans(const struct dequant_product *product,
                               const struct dequant_panel *panel, size_t row,
                               const struct dequant_activations *x, size_t x_stride,
                               size_t n_columns, const struct form *form,
                               lanes_floats totals[LANES_COLUMNS])
{
    const int32_t zero = form->is_wide && LANES_SIGN_WIDE ? 0 : product->zero;

    for (size_t span = 0; span < DEQUANT_PANEL_ELEMENTS / form->group_size; span++) {
        const lanes_floats d = lanes_load_floats(panel->d[span] + row);
        lanes sums[LANES_COLUMNS];

#pragma GCC unroll 8
        for (size_t c = 0; c < n_columns; c++)
            sums[c] = lanes_all(-zero * sums_of(&x[c * x_stride], form->group_size)[span]);
        add_group(panel, row, x, x_stride, n_columns, form, span, sums);
#pragma GCC unroll 8
        for (size_t c = 0; c < n_columns; c++) {
            const float x_scale = x[c * x_stride].scales[span * form->group_size / 32];

            totals[c] = lanes_fused(lanes_scale(d, x_scale), lanes_to_floats(sums[c]), totals[c]);
            if (product->has_mins) {
                const lanes x_sum = lanes_all(sums_of(&x[c * x_stride], form->group_size)[span]);

                totals[c] =
                    lanes_fused(lanes_scale(lanes_load_floats(panel->m[span] + row), x_scale),
                                lanes_to_floats(x_sum), totals[c]);
            }
        }
    }
}

/* n_columns columns; the form and n_columns are constants. */
INLINE void multiply_columns(const struct dequant_product *product,
                             const struct dequant_panel *panels, size_t n_panels,
                             const struct dequant_activations *x, size_t x_stride, size_t n_columns,
                             const struct form *form, float sums[][DEQUANT_PANEL_ROWS])
{
    for (size_t row = 0; row < DEQUANT_PANEL_ROWS; row += LANES) {
        lanes_floats totals[LANES_COLUMNS];

#pragma GCC unroll 8
        for (size_t c = 0; c < n_columns; c++)
            totals[c] = lanes_load_floats(sums[c] + row);
        for (size_t i = 0; i < n_panels; i++) {
            if (form->has_scales)
                for (size_t part = 0; part < DEQUANT_PANEL_ELEMENTS / DEQUANT_SCALED_ELEMENTS;
                     part++)
                    add_scaled_part(product, &panels[i], row, part, x + i, x_stride, n_columns,
                                    form, totals);
            else
                add_panel_of_spans(product, &panels[i], row, x + i, x_stride, n_columns, form,
                                   totals);
        }
#pragma GCC unroll 8
        for (size_t c = 0; c < n_columns; c++)
            lanes_store_floats(sums[c] + row, totals[c]);
    }
}

INLINE void multiply(const struct dequant_product *product, const struct dequant_panel *panels,
                     size_t n_panels, const struct dequant_activations *x, size_t x_stride,
                     size_t n_columns, struct form form, float sums[][DEQUANT_PANEL_ROWS])
{
    size_t c = 0;

    for (; c + LANES_COLUMNS <= n_columns; c += LANES_COLUMNS)
        multiply_columns(product, panels, n_panels, x + c * x_stride, x_stride, LANES_COLUMNS,
                         &form, sums + c);
    for (; c + 2 <= n_columns; c += 2)
        multiply_columns(product, panels, n_panels, x + c * x_stride, x_stride, 2, &form, sums + c);
    for (; c < n_columns; c++)
        multiply_columns(product, panels, n_panels, x + c * x_stride, x_stride, 1, &form, sums + c);
}

/* A function per form, so that each is optimised on its own. */
#define DEFINE_MULTIPLY(name, scales, group, most)                                                 \
    static void name(const struct dequant_product *product, const struct dequant_panel *panels,    \
                     size_t n_panels, const struct dequant_activations *x, size_t x_stride,        \
                     size_t n_columns, float sums[][DEQUANT_PANEL_ROWS])                           \
    {                                                                                              \
        multiply(product, panels, n_panels, x, x_stride, n_columns,                                \
                 (struct form){scales, group, LANES_DEPTH(most), (most) > 127}, sums);             \
    }

DEFINE_MULTIPLY(scaled_32_to_15, true, 32, 15)
DEFINE_MULTIPLY(scaled_32_to_31, true, 32, 31)
DEFINE_MULTIPLY(scaled_32_to_63, true, 32, 63)
DEFINE_MULTIPLY(scaled_32_to_127, true, 32, 127)
DEFINE_MULTIPLY(scaled_32_to_255, true, 32, 255)
DEFINE_MULTIPLY(scaled_16_to_31, true, 16, 31)
DEFINE_MULTIPLY(scaled_16_to_63, true, 16, 63)
DEFINE_MULTIPLY(scaled_16_to_127, true, 16, 127)
DEFINE_MULTIPLY(spans_32_to_15, false, 32, 15)
DEFINE_MULTIPLY(spans_32_to_31, false, 32, 31)
DEFINE_MULTIPLY(spans_32_to_255, false, 32, 255)
DEFINE_MULTIPLY(spans_16_to_31, false, 16, 31)

/* By form, and in it by the greatest integer. */
static const struct {
    bool has_scales;
    uint16_t group_elements;
    uint8_t greatest;
    dequant_multiply_fn *multiply;
} forms[] = {
    {true, 32, 15, scaled_32_to_15},   {true, 32, 31, scaled_32_to_31},
    {true, 32, 63, scaled_32_to_63},   {true, 32, 127, scaled_32_to_127},
    {true, 32, 255, scaled_32_to_255}, {true, 16, 31, scaled_16_to_31},
    {true, 16, 63, scaled_16_to_63},   {true, 16, 127, scaled_16_to_127},
    {false, 32, 15, spans_32_to_15},   {false, 32, 31, spans_32_to_31},
    {false, 32, 255, spans_32_to_255}, {false, 16, 31, spans_16_to_31},
};

void SIMD_NAME(multiply)(const struct dequant_product *product, const struct dequant_panel *panels,
                         size_t n_panels, const struct dequant_activations *x, size_t x_stride,
                         size_t n_columns, float sums[][DEQUANT_PANEL_ROWS])
{
    const bool has_scales = product->span_elements == DEQUANT_PANEL_ELEMENTS;

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].has_scales == has_scales &&
            forms[i].group_elements == product->group_elements &&
            forms[i].greatest >= product->greatest) {
            forms[i].multiply(product, panels, n_panels, x, x_stride, n_columns, sums);
            return;
        }
    }
    dequant_scalar_multiply(product, panels, n_panels, x, x_stride, n_columns, sums);
}
