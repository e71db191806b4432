/*
 * The last steps of integer products: sums of integers become floats, in vectors whose lanes are
 * rows. The members of a form are constants where these functions are inlined.
 */
#pragma once

#include "dequant/kernels/lanes.h"
#include "dequant/forms.h"

INLINE bool has_scales(const struct dequant_form *form)
{
    return form->span_elements == DEQUANT_PANEL_ELEMENTS;
}

INLINE bool is_wide(const struct dequant_form *form)
{
    return form->greatest > 127;
}

/* The zero point that lanes_dot_wide() or lanes_dot() has not subtracted. */
INLINE int32_t zero_left(const struct dequant_form *form)
{
    return is_wide(form) && LANES_SIGN_WIDE ? 0 : form->zero;
}

/*
 * Return true if sums of products and scales are kept as floats: types with minima have scales of
 * up to 63, and a part of 64 elements adds up to less than 2^24.
 */
INLINE bool has_float_sums(const struct dequant_form *form)
{
    return LANES_FLOAT_SUMS && has_scales(form) && form->has_mins && form->greatest <= 31;
}

INLINE int_vector add_scaled(const struct dequant_form *form, int_vector sum,
                             int_vector accumulator, int_vector scale)
{
    return has_float_sums(form) ? lanes_add_scaled_float(sum, accumulator, scale)
                                : lanes_add_scaled(sum, accumulator, scale);
}

INLINE int_vector lanes_dot_of(const struct dequant_form *form, int_vector sum, int_vector q,
                               int_vector x)
{
    return is_wide(form) ? lanes_dot_wide(sum, q, x) : lanes_dot(sum, q, x);
}

/* Elements 4 * step to 4 * step + 3 of a column, in each lane. */
INLINE int_vector four_of(const struct dequant_activations *x, size_t step)
{
    return lanes_all((int32_t)simd_u32(x->q + 4 * step));
}

INLINE const int16_t *sums_of(const struct dequant_activations *x, size_t group_elements)
{
    return group_elements == 16 ? x->sums_16 : x->sums_32;
}

/* Sums over the parts of a panel, not yet multiplied by d and m. */
struct part_sums {
    float_vector scaled, least;
};

/*
 * Add a part of a panel, the elements that share dx. `sum` is the part's Σ s * q * qx, from which
 * zero_left() has not been subtracted.
 */
INLINE void add_part(const struct dequant_form *form, const struct dequant_panel *panel, size_t row,
                     size_t part, const struct dequant_activations *x, int_vector sum,
                     struct part_sums *sums)
{
    const size_t n_groups = DEQUANT_SCALED_ELEMENTS / form->group_elements, first = part * n_groups;
    const float_vector x_scale = float_all(x->scales[part * DEQUANT_SCALED_ELEMENTS / 32]);
    const int16_t *x_sums = sums_of(x, form->group_elements);
    const bool has_zero = zero_left(form) > 0;
    int_vector mins = lanes_all(0);

    if (has_zero || form->has_mins)
        for (size_t group = first; group < first + n_groups; group += 2)
            mins = lanes_dot_pairs(mins, lanes_load(panel->mins[group / 2][row]),
                                   lanes_all((int32_t)simd_u32(x_sums + group)));
    if (has_zero)
        sum -= mins;
    sums->scaled = float_fused(
        x_scale, has_float_sums(form) ? (float_vector)sum : lanes_to_floats(sum), sums->scaled);
    if (form->has_mins)
        sums->least = float_fused(x_scale, lanes_to_floats(mins), sums->least);
}

/* Return `total` plus all parts of a panel. */
INLINE float_vector add_parts(const struct dequant_form *form, const struct dequant_panel *panel,
                              size_t row, const struct part_sums *sums, float_vector total)
{
    total = float_fused(float_load(panel->d[0] + row), sums->scaled, total);
    if (form->has_mins)
        total = float_fused(float_load(panel->m[0] + row), sums->least, total);
    return total;
}

/* The initial sum of a span: -zero_left() * Σ qx. */
INLINE int_vector span_start(const struct dequant_form *form, size_t span,
                             const struct dequant_activations *x)
{
    return lanes_all(-zero_left(form) * sums_of(x, form->span_elements)[span]);
}

/* Return `total` plus a span; `sum` is its sum of (q - z) * qx. */
INLINE float_vector add_span(const struct dequant_form *form, const struct dequant_panel *panel,
                             size_t row, size_t span, const struct dequant_activations *x,
                             int_vector sum, float_vector total)
{
    const float x_scale = x->scales[span * form->span_elements / 32];

    total = float_fused(float_load(panel->d[span] + row) * x_scale, lanes_to_floats(sum), total);
    if (form->has_mins)
        total =
            float_fused(float_load(panel->m[span] + row) * x_scale,
                        lanes_to_floats(lanes_all(sums_of(x, form->span_elements)[span])), total);
    return total;
}
