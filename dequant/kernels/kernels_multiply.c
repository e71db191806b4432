/*
 * Integer products of panels and columns in vectors whose lanes are rows. The loops are written
 * once for all types; where they are inlined, the number of columns and the form of the type are
 * constants. tests/kernels/reference/multiply_panels.c computes the same.
 */
#include "dequant/kernels/panel_totals.h"

#include <assert.h>

/* Steps of four elements until an accumulator is full. */
INLINE size_t depth_of(const struct dequant_form *form)
{
    (void)form; /* not every set needs it */
    return LANES_DEPTH(form->greatest);
}

/* Add the products of the group's elements to sums[c]. */
INLINE void add_group(const struct dequant_panel *panel, size_t row,
                      const struct dequant_activations *x, size_t n_columns,
                      const struct dequant_form *form, size_t group, int_vector sums[LANES_COLUMNS])
{
    const size_t n_steps = form->group_elements / 4, depth = depth_of(form);
    int_vector accumulators[LANES_COLUMNS];
    int_vector scale = lanes_all(0);

    if (has_scales(form))
        scale = lanes_load(panel->scales[group][row]);
    UNROLL
    for (size_t step = 0; step < n_steps; step++) {
        const size_t i = group * n_steps + step;
        const int_vector q = lanes_load(panel->q[i][row]);

        UNROLL
        for (size_t c = 0; c < n_columns; c++) {
            if (step % depth == 0)
                accumulators[c] = lanes_all(0);
            accumulators[c] = lanes_dot_of(form, accumulators[c], q, four_of(&x[c], i));
            if (depth >= n_steps)
                LANES_PIN(accumulators[c]);
            if (step % depth + 1 == depth || step + 1 == n_steps) {
                sums[c] = has_scales(form) ? add_scaled(form, sums[c], accumulators[c], scale)
                                           : lanes_add_accumulator(sums[c], accumulators[c]);
                LANES_PIN(sums[c]);
            }
        }
    }
}

INLINE void add_panel_of_parts(const struct dequant_form *form, const struct dequant_panel *panel,
                               size_t row, const struct dequant_activations *x, size_t n_columns,
                               float_vector totals[LANES_COLUMNS])
{
    const size_t n_groups = DEQUANT_SCALED_ELEMENTS / form->group_elements;
    struct part_sums part_sums[LANES_COLUMNS];

    UNROLL
    for (size_t c = 0; c < n_columns; c++)
        part_sums[c] = (struct part_sums){float_all(0), float_all(0)};
    for (size_t part = 0; part < DEQUANT_PANEL_ELEMENTS / DEQUANT_SCALED_ELEMENTS; part++) {
        int_vector sums[LANES_COLUMNS];

        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            sums[c] = lanes_all(0);
        for (size_t group = part * n_groups; group < (part + 1) * n_groups; group++)
            add_group(panel, row, x, n_columns, form, group, sums);
        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            add_part(form, panel, row, part, &x[c], sums[c], &part_sums[c]);
    }
    UNROLL
    for (size_t c = 0; c < n_columns; c++)
        totals[c] = add_parts(form, panel, row, &part_sums[c], totals[c]);
}

INLINE void add_panel_of_spans(const struct dequant_form *form, const struct dequant_panel *panel,
                               size_t row, const struct dequant_activations *x, size_t n_columns,
                               float_vector totals[LANES_COLUMNS])
{
    for (size_t span = 0; span < DEQUANT_PANEL_ELEMENTS / form->span_elements; span++) {
        int_vector sums[LANES_COLUMNS];

        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            sums[c] = span_start(form, span, &x[c]);
        add_group(panel, row, x, n_columns, form, span, sums);
        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            totals[c] = add_span(form, panel, row, span, &x[c], sums[c], totals[c]);
    }
}

/* n_columns columns; the form and n_columns are constants. */
INLINE void multiply_columns(const struct dequant_form *form, const struct dequant_panel *panel,
                             const struct dequant_activations *x, size_t n_columns,
                             float sums[][DEQUANT_PANEL_ROWS])
{
    for (size_t row = 0; row < DEQUANT_PANEL_ROWS; row += FLOAT_WIDTH) {
        float_vector totals[LANES_COLUMNS];

        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            totals[c] = float_load(sums[c] + row);
        if (has_scales(form))
            add_panel_of_parts(form, panel, row, x, n_columns, totals);
        else
            add_panel_of_spans(form, panel, row, x, n_columns, totals);
        UNROLL
        for (size_t c = 0; c < n_columns; c++)
            float_store(sums[c] + row, totals[c]);
    }
}

INLINE void multiply(const struct dequant_form *form, const struct dequant_panel *panel,
                     const struct dequant_activations *x, size_t n_columns,
                     float sums[][DEQUANT_PANEL_ROWS])
{
    size_t c = 0;

    for (; c + LANES_COLUMNS <= n_columns; c += LANES_COLUMNS)
        multiply_columns(form, panel, x + c, LANES_COLUMNS, sums + c);
    for (; c + 2 <= n_columns; c += 2)
        multiply_columns(form, panel, x + c, 2, sums + c);
    for (; c < n_columns; c++)
        multiply_columns(form, panel, x + c, 1, sums + c);
}

/*
 * A function per form, so that each is optimised on its own: elements of a span and of a group, the
 * greatest integer, and for types with integer scales whether there are minima instead of a zero
 * point. Other zero points and minima matter little.
 */
#define DEFINE_MULTIPLY(name, span, group, most, mins)                                             \
    static void name(const struct dequant_form *of_type, const struct dequant_panel *panel,        \
                     const struct dequant_activations *x, size_t n_columns,                        \
                     float sums[][DEQUANT_PANEL_ROWS])                                             \
    {                                                                                              \
        const bool is_scaled = (span) == DEQUANT_PANEL_ELEMENTS;                                   \
        const struct dequant_form form = {span, group, (mins) ? 0 : of_type->zero, most,           \
                                          is_scaled ? (mins) : of_type->has_mins};                 \
                                                                                                   \
        multiply(&form, panel, x, n_columns, sums);                                                \
    }

DEFINE_MULTIPLY(least_32_to_15, 256, 32, 15, true)
DEFINE_MULTIPLY(least_32_to_31, 256, 32, 31, true)
DEFINE_MULTIPLY(least_16_to_31, 256, 16, 31, true)
DEFINE_MULTIPLY(scaled_32_to_31, 256, 32, 31, false)
DEFINE_MULTIPLY(scaled_32_to_63, 256, 32, 63, false)
DEFINE_MULTIPLY(scaled_32_to_127, 256, 32, 127, false)
DEFINE_MULTIPLY(scaled_32_to_255, 256, 32, 255, false)
DEFINE_MULTIPLY(scaled_16_to_31, 256, 16, 31, false)
DEFINE_MULTIPLY(scaled_16_to_63, 256, 16, 63, false)
DEFINE_MULTIPLY(scaled_16_to_127, 256, 16, 127, false)
DEFINE_MULTIPLY(spans_32_to_15, 32, 32, 15, false)
DEFINE_MULTIPLY(spans_32_to_31, 32, 32, 31, false)
DEFINE_MULTIPLY(spans_32_to_255, 32, 32, 255, false)
DEFINE_MULTIPLY(spans_16_to_31, 16, 16, 31, false)

/* By the form, and then by the greatest integer. */
static const struct {
    uint16_t span_elements, group_elements;
    bool has_least; /* integer scales and minima */
    uint8_t greatest;
    dequant_multiply_fn *multiply;
} forms[] = {
    {256, 32, true, 15, least_32_to_15},     {256, 32, true, 31, least_32_to_31},
    {256, 16, true, 31, least_16_to_31},     {256, 32, false, 31, scaled_32_to_31},
    {256, 32, false, 63, scaled_32_to_63},   {256, 32, false, 127, scaled_32_to_127},
    {256, 32, false, 255, scaled_32_to_255}, {256, 16, false, 31, scaled_16_to_31},
    {256, 16, false, 63, scaled_16_to_63},   {256, 16, false, 127, scaled_16_to_127},
    {32, 32, false, 15, spans_32_to_15},     {32, 32, false, 31, spans_32_to_31},
    {32, 32, false, 255, spans_32_to_255},   {16, 16, false, 31, spans_16_to_31},
};

void SIMD_NAME(multiply)(const struct dequant_form *form, const struct dequant_panel *panel,
                         const struct dequant_activations *x, size_t n_columns,
                         float sums[][DEQUANT_PANEL_ROWS])
{
    const bool has_least = has_scales(form) && form->has_mins;

    size_t i = 0;

    while (forms[i].span_elements != form->span_elements ||
           forms[i].group_elements != form->group_elements || forms[i].has_least != has_least ||
           forms[i].greatest < form->greatest) {
        i++;
        assert(i < sizeof forms / sizeof *forms);
    }
    forms[i].multiply(form, panel, x, n_columns, sums);
}
