/* The reference for unpacking the types of up to two bits; dequant/blocks.h has their layouts. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

/* Every group's scale of a ternary type is 1. */
static void set_ternary_scales(struct dequant_panel *panel, size_t row, uint16_t d)
{
    panel->d[0][row] = dequant_f16_to_f32(d);
    for (size_t g = 0; g < DEQUANT_SUPERBLOCK / 32; g++)
        panel_set_scale_of_zero(panel, row, g, 1, 1);
}

/* Digits of n bytes, see struct dequant_tq1_0: all first digits, then all second ones and so on. */
static void set_digits(struct dequant_panel *panel, size_t row, size_t element,
                       const uint8_t *bytes, size_t n, size_t n_digits)
{
    for (size_t i = 0; i < n; i++) {
        unsigned fraction = bytes[i];

        for (size_t k = 0; k < n_digits; k++) {
            panel_set_q(panel, row, element + k * n + i, (int)(3 * fraction >> 8));
            fraction = 3 * fraction & 255;
        }
    }
}

void reference_unpack_tq1_0(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_tq1_0 *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        set_ternary_scales(panel, r, block->d);
        set_digits(panel, r, 0, block->wide, 32, 5);
        set_digits(panel, r, 160, block->narrow, 16, 5);
        set_digits(panel, r, 240, block->tail, 4, 4);
    }
}

void reference_unpack_tq2_0(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_tq2_0 *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        set_ternary_scales(panel, r, block->d);
        for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
            panel_set_q(panel, r, i, block->qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3);
    }
}

/* The scale of n spans from `first` on. */
static void set_spans(struct dequant_panel *panel, size_t row, size_t first, size_t n, uint16_t d)
{
    for (size_t i = first; i < first + n; i++)
        panel->d[i][row] = dequant_f16_to_f32(d);
}

/* The integers are 0 and 2, the zero point is 1. */
void reference_unpack_q1_0(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    enum { N = DEQUANT_Q1_0_BLOCK };

    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        for (size_t b = 0; b < DEQUANT_PANEL_ELEMENTS / N; b++) {
            const struct dequant_q1_0 *block = panel_block(rows, row_bytes, r, b, sizeof *block);

            set_spans(panel, r, b * (N / 32), N / 32, block->d);
            for (size_t i = 0; i < N; i++)
                panel_set_q(panel, r, b * N + i, (block->qs[i / 8] >> (i % 8) & 1) * 2);
        }
    }
}

void reference_unpack_q2_0(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    enum { N = DEQUANT_Q2_0_BLOCK };

    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        for (size_t b = 0; b < DEQUANT_PANEL_ELEMENTS / N; b++) {
            const struct dequant_q2_0 *block = panel_block(rows, row_bytes, r, b, sizeof *block);

            set_spans(panel, r, b * (N / 32), N / 32, block->d);
            for (size_t i = 0; i < N; i++)
                panel_set_q(panel, r, b * N + i, block->qs[i / 4] >> (i % 4 * 2) & 3);
        }
    }
}
