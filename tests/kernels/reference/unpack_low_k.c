/* The reference for unpacking Q2_K and Q3_K; dequant/blocks.h has their layouts. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

/* The lower two bits of element i of either type. */
static int low_bits(const uint8_t qs[DEQUANT_SUPERBLOCK / 4], size_t i)
{
    return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
}

void reference_unpack_q2_k(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_q2_k *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d);
        panel->m[0][r] = -dequant_f16_to_f32(block->m);
        for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
            panel_set_scale(panel, r, s, block->scales[s] & 15);
            panel_set_min(panel, r, s, block->scales[s] >> 4);
        }
        for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
            panel_set_q(panel, r, i, low_bits(block->qs, i));
    }
}

void reference_unpack_q3_k(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        const struct dequant_q3_k *block = panel_block(rows, row_bytes, r, 0, sizeof *block);

        panel->d[0][r] = dequant_f16_to_f32(block->d);
        for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
            const int low = block->scales_low[s % 8] >> (s / 8 * 4) & 15;
            const int high = block->scales_high[s % 4] >> (s / 4 * 2) & 3;

            panel_set_scale_of_zero(panel, r, s, (high << 4 | low) - 32, 4);
        }
        for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
            panel_set_q(panel, r, i,
                        (block->qh[i % 32] >> (i / 32) & 1) << 2 | low_bits(block->qs, i));
    }
}
