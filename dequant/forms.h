/*
 * Panels: the data of integer products of weights and activations, and each type's form.
 *
 * Activations are quantized to signed bytes. Weights are unpacked, sixteen rows at a time, to a
 * panel: their integers as bytes, side by side, with their scales. The products of the integers are
 * summed up exactly; only scales are multiplied in floats. A product is therefore the same to the
 * bit in every kernel set, for any number of columns and any division of the rows.
 *
 * A panel of a type with spans of 256 elements and groups of 32, like Q4_K:
 *
 *              element 0 …   3    4 …   7        28 …  31   32 …  35              252 … 255
 *            ┌──────────────┬──────────────┬───┬──────────┬──────────┬─────────┬───────────┐
 *   row  0   │ q[0][0]      │ q[1][0]      │ … │ q[7][0]  │ q[8][0]  │    …    │ q[63][0]  │
 *    …       │ 4 bytes each │              │   │          │          │         │           │
 *   row 15   │ q[0][15]     │ q[1][15]     │ … │ q[7][15] │ q[8][15] │    …    │ q[63][15] │
 *            └──────────────┴──────────────┴───┴──────────┴──────────┴─────────┴───────────┘
 *   group     0: scales[0][r], mins[0][r][0]               1: scales[1][r], mins[0][r][1]  …
 *   span      0: d[0][r], m[0][r]
 *
 * A step reads one column of the picture: 64 bytes, four elements of each of the sixteen rows.
 *
 * A weight is w = d * s * (q - z) + m * t, with floats d and m and integers s, q, z and t; an
 * activation is x = dx * qx. The product of a row and a column is a sum over the runs of elements
 * that share d and dx, in their order. Types without integer scales (s = t = 1):
 *
 *     sum = fma(d * dx, float(Σ (q - z) * qx), sum)
 *     sum = fma(m * dx, float(Σ qx), sum)                    for types with minima
 *
 * Types with integer scales have one d for a panel. First each run of elements that shares dx:
 *
 *     scaled = fma(dx, float(Σ s * (q - z) * qx), scaled)
 *     least = fma(dx, float(Σ t * qx), least)                for types with minima
 *
 * then the panel:
 *
 *     sum = fma(d, scaled, sum)
 *     sum = fma(m, least, sum)                               for types with minima
 */
#pragma once

#include "dequant/sets.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dequant_form {
    uint16_t span_elements;  /* number that shares d: 16, 32 or 256 */
    uint16_t group_elements; /* number that shares s: 16 or 32; the span without integer scales */
    uint8_t zero;            /* z; 128 if `greatest` is over 127: q - z is a signed byte */
    uint8_t greatest;        /* maximum of q */
    bool has_mins;           /* the type has t and m */
};

/*
 * The forms of the types, by the name of the block struct.
 * Columns: span, group, zero, greatest, has_mins.
 */
/* clang-format off */
#define DEQUANT_FORM_q4_0     { 32, 32,   8,  15, false}
#define DEQUANT_FORM_q4_1     { 32, 32,   0,  15,  true}
#define DEQUANT_FORM_q5_0     { 32, 32,  16,  31, false}
#define DEQUANT_FORM_q5_1     { 32, 32,   0,  31,  true}
#define DEQUANT_FORM_q8_0     { 32, 32, 128, 255, false}
#define DEQUANT_FORM_q2_k     {256, 16,   0,   3,  true}
#define DEQUANT_FORM_q3_k     {256, 16,   4,   7, false}
#define DEQUANT_FORM_q4_k     {256, 32,   0,  15,  true}
#define DEQUANT_FORM_q5_k     {256, 32,   0,  31,  true}
#define DEQUANT_FORM_q6_k     {256, 16,  32,  63, false}
#define DEQUANT_FORM_iq2_xxs  {256, 32,  43,  86, false}
#define DEQUANT_FORM_iq2_xs   {256, 16,  43,  86, false}
#define DEQUANT_FORM_iq2_s    {256, 16,  43,  86, false}
#define DEQUANT_FORM_iq3_xxs  {256, 32,  31,  62, false}
#define DEQUANT_FORM_iq3_s    {256, 32,  15,  30, false}
#define DEQUANT_FORM_iq1_s    {256, 32,   9,  18, false}
#define DEQUANT_FORM_iq1_m    {256, 16,   9,  18, false}
#define DEQUANT_FORM_iq4_nl   { 32, 32, 128, 255, false}
#define DEQUANT_FORM_iq4_xs   {256, 32, 128, 255, false}
#define DEQUANT_FORM_tq1_0    {256, 32,   1,   2, false}
#define DEQUANT_FORM_tq2_0    {256, 32,   1,   3, false}
#define DEQUANT_FORM_mxfp4    { 32, 32,  12,  24, false}
#define DEQUANT_FORM_nvfp4    { 16, 16,  12,  24, false}
#define DEQUANT_FORM_q1_0     { 32, 32,   1,   2, false}
#define DEQUANT_FORM_q2_0     { 32, 32,   1,   3, false}
/* clang-format on */

enum {
    DEQUANT_PANEL_ROWS = 16,
    DEQUANT_PANEL_ELEMENTS = 256, /* of each row */
    /* number that shares dx if weights have integer scales; 32 otherwise */
    DEQUANT_SCALED_ELEMENTS = 64,
};

/*
 * The elements of a column that are multiplied with a panel. After the end of the column, they are
 * 0.
 */
struct dequant_activations {
    int8_t q[DEQUANT_PANEL_ELEMENTS];
    int16_t sums_16[DEQUANT_PANEL_ELEMENTS / 16]; /* of q over 16 elements each */
    int16_t sums_32[DEQUANT_PANEL_ELEMENTS / 32]; /* of q over 32 elements each */
    float scales[DEQUANT_PANEL_ELEMENTS / 32];    /* dx of 32 elements each */
};

/*
 * Unpacked weights: DEQUANT_PANEL_ELEMENTS elements of DEQUANT_PANEL_ROWS rows. Index r, the lane,
 * is the row. A group has group_elements of struct dequant_form, a span its span_elements.
 */
struct dequant_panel {
    /* q[i][r]: elements 4i to 4i + 3 of row r. */
    uint8_t q[DEQUANT_PANEL_ELEMENTS / 4][DEQUANT_PANEL_ROWS][4];
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
 * Add to sums[r] the product of row r and the column at x, with the same result as by panels. The
 * rows are n_elements long, a multiple of DEQUANT_SCALED_ELEMENTS. The next DEQUANT_PANEL_ROWS rows
 * may be prefetched.
 */
typedef void dequant_multiply_column_fn(const void *rows, size_t row_bytes, size_t n_elements,
                                        const struct dequant_activations *x,
                                        float sums[DEQUANT_PANEL_ROWS]);

/* The integer products of a type. */
struct dequant_product {
    struct dequant_form form;

    /* Slots by kernel set. The scalar set's are NULL: it multiplies in floats. */
    dequant_unpack_fn *unpack[DEQUANT_SETS];
    dequant_multiply_column_fn *multiply_column[DEQUANT_SETS];
};

/*
 * Add to sums[c][r] the product of the panel's row r and column c, x[c], for c < n_columns.
 */
typedef void dequant_multiply_fn(const struct dequant_form *form, const struct dequant_panel *panel,
                                 const struct dequant_activations *x, size_t n_columns,
                                 float sums[][DEQUANT_PANEL_ROWS]);

/* Quantize DEQUANT_PANEL_ELEMENTS floats. Blocks of block_elements, a multiple of 32, share dx. */
typedef void dequant_quantize_fn(const float *x, size_t block_elements,
                                 struct dequant_activations *out);
