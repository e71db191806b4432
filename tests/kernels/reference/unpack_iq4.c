/* The reference for unpacking IQ4_NL and IQ4_XS; dequant/iq_blocks.h has their layouts. */
#include "dequant/iq_blocks.h"
#include "dequant/iq_grids.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

/* Element i of 32 nibbles, as the table has it. */
static int value(const uint8_t *qs, size_t i)
{
    return dequant_iq4_values[qs[i % 16] >> (i / 16 * 4) & 15] + 128;
}

static void iq4_nl_row(const struct dequant_iq4_nl *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i, value(blocks[b].qs, i));
    }
}

static void iq4_xs_row(const struct dequant_iq4_xs *block, size_t row, struct dequant_panel *panel)
{
    panel->d[0][row] = dequant_f16_to_f32(block->d);
    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 32; s++) {
        const int low = block->scales_low[s / 2] >> (s % 2 * 4) & 15;
        const int scale = (low | (block->scales_high >> 2 * s & 3) << 4) - 32;

        panel_set_scale(panel, row, s, scale);
        panel_set_min(panel, row, s, scale * 128);
        for (size_t i = 0; i < 32; i++)
            panel_set_q(panel, row, 32 * s + i, value(block->qs[s], i));
    }
}

PANEL_DEFINE_UNPACKER(iq4_nl)
PANEL_DEFINE_UNPACKER(iq4_xs)
