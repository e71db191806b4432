/*
 * The reference for unpacking the types with grids; dequant/iq_blocks.h has their layouts.
 *
 * d holds the fraction of a type's formula, so that the scale is 2 * scale + 1. The zero point is
 * the greatest magnitude.
 */
#include "dequant/iq_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

#include <stdbool.h>

enum { ZERO_IQ1 = 9, ZERO_IQ2 = 43, ZERO_IQ3_XXS = 31, ZERO_IQ3_S = 15 };

/* n elements: the bytes of a grid entry, negated where a bit of `signs` is set. */
static void set_run(struct dequant_panel *panel, size_t row, size_t element, uint64_t entry,
                    size_t n, unsigned signs, int zero)
{
    for (size_t i = 0; i < n; i++) {
        const int magnitude = (int)(entry >> (8 * i) & 255);

        panel_set_q(panel, row, element + i, signs >> i & 1 ? zero - magnitude : zero + magnitude);
    }
}

/* The 4-bit scales of n groups, two to a byte. */
static void set_scales(struct dequant_panel *panel, size_t row, const uint8_t *scales, size_t n,
                       int zero)
{
    for (size_t s = 0; s < n; s++)
        panel_set_scale_of_zero(panel, row, s, 2 * (scales[s / 2] >> (s % 2 * 4) & 15) + 1, zero);
}

void reference_unpack_iq2_xxs(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq2_xxs *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d) * 0.125F;
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
            const uint32_t signs = block->groups[k / 4][2] | (uint32_t)block->groups[k / 4][3]
                                                                 << 16;
            const size_t index = block->groups[k / 4][k / 2 % 2] >> (k % 2 * 8) & 255;

            panel_set_scale_of_zero(panel, r, k / 4, (int)(2 * (signs >> 28) + 1), ZERO_IQ2);
            set_run(panel, r, 8 * k, dequant_iq2_xxs_grid[index], 8,
                    dequant_even_signs(signs >> (k % 4 * 7)), ZERO_IQ2);
        }
    }
}

void reference_unpack_iq2_xs(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq2_xs *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d) * 0.125F;
        set_scales(panel, r, block->scales, DEQUANT_SUPERBLOCK / 16, ZERO_IQ2);
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
            const unsigned run = block->runs[k];

            set_run(panel, r, 8 * k, dequant_iq2_xs_grid[run & 511], 8,
                    dequant_even_signs(run >> 9), ZERO_IQ2);
        }
    }
}

void reference_unpack_iq2_s(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq2_s *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d) * 0.125F;
        set_scales(panel, r, block->scales, DEQUANT_SUPERBLOCK / 16, ZERO_IQ2);
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
            const size_t high = block->qh[k / 4] >> (k % 4 * 2) & 3;

            set_run(panel, r, 8 * k, dequant_iq2_s_grid[high << 8 | block->qs[k]], 8,
                    block->signs[k], ZERO_IQ2);
        }
    }
}

/* All values of the grid are even: the integers are half of them. */
void reference_unpack_iq3_xxs(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq3_xxs *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d) * 0.5F;
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 4; k++) {
            const uint8_t *bytes = block->signs[k / 8];
            const uint32_t signs = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                                   (uint32_t)bytes[3] << 24;

            panel_set_scale_of_zero(panel, r, k / 8, (int)(2 * (signs >> 28) + 1), ZERO_IQ3_XXS);
            set_run(panel, r, 4 * k, dequant_iq3_xxs_grid[block->qs[k]] / 2, 4,
                    dequant_even_signs(signs >> (k / 2 % 4 * 7)) >> (k % 2 * 4), ZERO_IQ3_XXS);
        }
    }
}

void reference_unpack_iq3_s(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq3_s *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d);
        set_scales(panel, r, block->scales, DEQUANT_SUPERBLOCK / 32, ZERO_IQ3_S);
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 4; k++) {
            const size_t high = block->qh[k / 8] >> (k % 8) & 1;

            set_run(panel, r, 4 * k, dequant_iq3_s_grid[high << 8 | block->qs[k]], 4,
                    (unsigned)block->signs[k / 2] >> (k % 2 * 4), ZERO_IQ3_S);
        }
    }
}

/* Eight elements of an IQ1 type, in eighths. */
static void set_shifted(struct dequant_panel *panel, size_t row, size_t element, size_t index,
                        bool minus)
{
    const uint64_t entry = dequant_iq1_grid[index];

    for (size_t i = 0; i < 8; i++)
        panel_set_q(panel, row, element + i,
                    8 * (int8_t)(entry >> (8 * i)) + (minus ? -1 : 1) + ZERO_IQ1);
}

void reference_unpack_iq1_s(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq1_s *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d) * 0.125F;
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
            const unsigned group = block->qh[k / 4];
            const size_t high = group >> (k % 4 * 3) & 7;

            panel_set_scale_of_zero(panel, r, k / 4, (int)(2 * (group >> 12 & 7) + 1), ZERO_IQ1);
            set_shifted(panel, r, 8 * k, high << 8 | block->qs[k], group >> 15);
        }
    }
}

void reference_unpack_iq1_m(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_iq1_m *block = panel_block(rows, row_bytes, r, 0, sizeof *block);
        unsigned d = 0;

        for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
            const unsigned word = block->scales[s / 4][0] | (unsigned)block->scales[s / 4][1] << 8;

            d |= word >> 12 << (s / 4 * 4);
            panel_set_scale_of_zero(panel, r, s, (int)(2 * (word >> (s % 4 * 3) & 7) + 1),
                                    ZERO_IQ1);
        }
        panel->d[0][r] = dequant_f16_to_f32((uint16_t)d) * 0.125F;
        for (size_t k = 0; k < DEQUANT_SUPERBLOCK / 8; k++) {
            const unsigned high = (unsigned)block->qh[k / 2] >> (k % 2 * 4);

            set_shifted(panel, r, 8 * k, (high & 7) << 8 | block->qs[k], high & 8);
        }
    }
}
