/*
 * The reference for unpacking the types made of 4-bit floats; dequant/blocks.h has their layouts.
 * An integer is twice a float, so d is half a scale.
 */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

/* Zero point of both types. */
enum { ZERO = 12 };

void reference_unpack_mxfp4(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        for (size_t b = 0; b < DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK; b++) {
            const struct dequant_mxfp4 *block = panel_block(rows, row_bytes, r, b, sizeof *block);

            panel->d[b][r] = dequant_half_e8m0_to_f32(block->e);
            for (size_t i = 0; i < DEQUANT_BLOCK; i++)
                panel_set_q(panel, r, b * DEQUANT_BLOCK + i,
                            dequant_doubled_e2m1[block->qs[i % 16] >> (i / 16 * 4) & 15] + ZERO);
        }
    }
}

void reference_unpack_nvfp4(const void *rows, size_t row_bytes, struct dequant_panel *panel)
{
    for (size_t r = 0; r < DEQUANT_PANEL_ROWS; r++) {
        for (size_t s = 0; s < DEQUANT_PANEL_ELEMENTS / 16; s++) {
            const struct dequant_nvfp4 *block =
                panel_block(rows, row_bytes, r, s / 4, sizeof *block);

            panel->d[s][r] = dequant_half_ue4m3_to_f32(block->scales[s % 4]);
            for (size_t i = 0; i < 16; i++)
                panel_set_q(panel, r, 16 * s + i,
                            dequant_doubled_e2m1[block->qs[s % 4][i % 8] >> (i / 8 * 4) & 15] +
                                ZERO);
        }
    }
}
