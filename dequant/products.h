/* Products of quantized weights and activations in integers; dequant/forms.h defines them. */
#pragma once

#include "dequant/types.h"

/*
 * Return true if the chosen kernels multiply weights of the type in integers. The other functions
 * are only for these types.
 */
bool dequant_multiplies_integers(const struct dequant_type *type);

/* Return the number of panels, each a struct dequant_activations, in a column of n elements. */
static inline size_t dequant_activations_count(size_t n)
{
    return (n + DEQUANT_PANEL_ELEMENTS - 1) / DEQUANT_PANEL_ELEMENTS;
}

/* Return the number of activations that share dx, for weights of a type. */
static inline size_t dequant_block_elements(const struct dequant_form *form)
{
    return form->span_elements == DEQUANT_PANEL_ELEMENTS ? DEQUANT_SCALED_ELEMENTS : 32;
}

/*
 * Quantize a column of n floats for weights of a type: dx is the greatest magnitude among the
 * elements that share it, divided by 127; q is x / dx, to nearest with ties to even. A NaN or
 * infinity among the elements makes dx, and so the product, a NaN. The elements for panel i go to
 * out[i * stride], for i < dequant_activations_count(n).
 */
void dequant_quantize(const struct dequant_form *form, const float *x, size_t n,
                      struct dequant_activations *out, size_t stride);

/*
 * Unpack panel `index` of n_rows rows, at most DEQUANT_PANEL_ROWS, by the chosen kernels. `rows` is
 * the first row; rows are row_bytes apart and n_elements long. Lanes from n_rows on and elements
 * past the end of the rows become 0.
 */
void dequant_unpack(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                    size_t n_rows, size_t n_elements, size_t index, struct dequant_panel *panel);

/* Multiply by the chosen kernels; see dequant_multiply_fn. */
void dequant_multiply(const struct dequant_form *form, const struct dequant_panel *panel,
                      const struct dequant_activations *x, size_t n_columns,
                      float sums[][DEQUANT_PANEL_ROWS]);

/*
 * Add the product of row r and a column to sums[r], by the chosen kernels. `rows`, row_bytes,
 * n_rows and n_elements are as for dequant_unpack(). x[i] has the column's elements for panel i.
 */
void dequant_multiply_column(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                             size_t n_rows, size_t n_elements, const struct dequant_activations *x,
                             float sums[DEQUANT_PANEL_ROWS]);
