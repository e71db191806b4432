/*
 * Products of quantized weights and activations in integers.
 *
 * Activations are quantized to signed bytes. Weights are unpacked, sixteen rows at a time, to a
 * panel: their integers as bytes, side by side, with their scales. The products of the integers are
 * summed up exactly; only scales are multiplied in floats. So a product is the same to the bit with
 * every kernel set, for any number of columns and in any division of the rows.
 *
 * With w = d * s * (q - z) of a type with scales d (a float) and s (an integer), minima m * t, and
 * activations x = dx * qx, the product of a row and a column is a sum over the runs of elements
 * that share d and dx, in their order. Without integer scales:
 *
 *     sum = fma(d * dx, float(Σ (q - z) * qx), sum)
 *     sum = fma(m * dx, float(Σ qx), sum)                    for types with minima
 *
 * With integer scales d is that of 256 elements, and each of their runs adds to parts first:
 *
 *     scaled = fma(dx, float(Σ s * (q - z) * qx), scaled),   least = fma(dx, float(Σ t * qx),
 * least) sum = fma(d, scaled, sum), then sum = fma(m, least, sum)
 */
#ifndef GGUFS_DEQUANT_PRODUCTS_H
#define GGUFS_DEQUANT_PRODUCTS_H

#include "dequant/forms.h"
#include "dequant/sets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dequant_type;

enum {
    DEQUANT_PANEL_ROWS = 16,
    DEQUANT_PANEL_ELEMENTS = 256, /* of each row */
    /* that share dx where weights have integer scales; 32 share it elsewhere */
    DEQUANT_SCALED_ELEMENTS = 64,
};

/*
 * Elements of a column that meet a panel. The rest of a column whose length is no multiple of
 * DEQUANT_PANEL_ELEMENTS is 0.
 */
struct dequant_activations {
    int8_t q[DEQUANT_PANEL_ELEMENTS];
    int16_t sums_16[DEQUANT_PANEL_ELEMENTS / 16]; /* of q over 16 elements each */
    int16_t sums_32[DEQUANT_PANEL_ELEMENTS / 32]; /* of q over 32 elements each */
    float scales[DEQUANT_PANEL_ELEMENTS / 32];    /* dx of 32 elements each */
};

/*
 * Unpacked weights: DEQUANT_PANEL_ELEMENTS elements of DEQUANT_PANEL_ROWS rows. "Lane" r of an
 * array belongs to row r. Groups have struct dequant_form's group_elements, spans its
 * span_elements.
 */
struct dequant_panel {
    uint8_t q[DEQUANT_PANEL_ELEMENTS / 4][DEQUANT_PANEL_ROWS]
             [4]; /* elements 4i to 4i + 3 of row r */
    /* By group: s twice, for multiplications of pairs. Unused without integer scales. */
    int16_t scales[DEQUANT_PANEL_ELEMENTS / 16][DEQUANT_PANEL_ROWS][2];
    /* By pairs of groups: t, or s * z where the type has a zero point and integer scales. */
    int16_t mins[DEQUANT_PANEL_ELEMENTS / 32][DEQUANT_PANEL_ROWS][2];
    float d[DEQUANT_PANEL_ELEMENTS / 16][DEQUANT_PANEL_ROWS]; /* by span */
    float m[DEQUANT_PANEL_ELEMENTS / 16][DEQUANT_PANEL_ROWS]; /* by span; types with minima only */
};

/*
 * Unpack DEQUANT_PANEL_ELEMENTS elements of DEQUANT_PANEL_ROWS rows. `rows` is the first block of
 * row 0, and the rows lie row_bytes apart.
 */
typedef void dequant_unpack_fn(const void *rows, size_t row_bytes, struct dequant_panel *panel);

/*
 * Add to sums[r] the product of row r and a column, which begins at x: the same as with panels
 * unpacked from rows. The rows are n_elements long, and the next DEQUANT_PANEL_ROWS rows may be
 * fetched to the caches.
 */
typedef void dequant_multiply_column_fn(const void *rows, size_t row_bytes, size_t n_elements,
                                        const struct dequant_activations *x,
                                        float sums[DEQUANT_PANEL_ROWS]);

/* How the integers of a type are multiplied. */
struct dequant_product {
    struct dequant_form form;

    /* Slots by kernel set; where a set's own slot is NULL, the scalar one or a panel serves. */
    dequant_unpack_fn *unpack[DEQUANT_SETS];
    dequant_multiply_column_fn *multiply_column[DEQUANT_SETS];
};

/*
 * Add the products of a panel and the n_columns columns of x: to sums[c][r] that of row r and
 * column c.
 */
typedef void dequant_multiply_fn(const struct dequant_form *form, const struct dequant_panel *panel,
                                 const struct dequant_activations *x, size_t n_columns,
                                 float sums[][DEQUANT_PANEL_ROWS]);

/* Quantize DEQUANT_PANEL_ELEMENTS elements in blocks of block_elements, a multiple of 32, that
 * share dx.
 */
typedef void dequant_quantize_fn(const float *x, size_t block_elements,
                                 struct dequant_activations *out);

/* Return the number of struct dequant_activations that a column of n elements takes. */
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
 * elements that share it, divided by 127; q is x / dx, to nearest with
 * ties to even. A NaN or infinity among the elements makes dx a NaN, and so the product. Those that
 * meet panel i of a row go to out[i * stride], for all dequant_activations_count(n) panels.
 */
void dequant_quantize(const struct dequant_form *form, const float *x, size_t n,
                      struct dequant_activations *out, size_t stride);

/*
 * Unpack panel `index` of up to DEQUANT_PANEL_ROWS rows of the type by the chosen kernels. `rows`
 * is the first row, n_rows the number of rows, row_bytes their distance, n_elements their length.
 * Lanes and elements that the tensor does not have are 0.
 */
void dequant_unpack(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                    size_t n_rows, size_t n_elements, size_t index, struct dequant_panel *panel);

/* Multiply by the chosen kernels; see dequant_multiply_fn. */
void dequant_multiply(const struct dequant_form *form, const struct dequant_panel *panel,
                      const struct dequant_activations *x, size_t n_columns,
                      float sums[][DEQUANT_PANEL_ROWS]);

/*
 * Add the products of up to DEQUANT_PANEL_ROWS rows and a column by the chosen kernels: to sums[r]
 * that of row r. `rows`, row_bytes, n_rows and n_elements as for dequant_unpack(); x has what meets
 * panel i in x[i].
 */
void dequant_multiply_column(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                             size_t n_rows, size_t n_elements, const struct dequant_activations *x,
                             float sums[DEQUANT_PANEL_ROWS]);

#endif
