/* The reference for unpacking the K types; dequant/blocks.h has their layouts. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

/* The scales and minima of Q4_K and Q5_K. */
static void set_k_scales(const struct dequant_k_scales *k, size_t row, struct dequant_panel *panel)
{
    for (size_t s = 0; s < 4; s++) {
        panel_set_scale(panel, row, s, k->scales[s] & 63);
        panel_set_min(panel, row, s, k->mins[s] & 63);
        panel_set_scale(panel, row, s + 4, (k->low[s] & 15) | (k->scales[s] >> 6) << 4);
        panel_set_min(panel, row, s + 4, k->low[s] >> 4 | (k->mins[s] >> 6) << 4);
    }
}

static void q4_k_row(const struct dequant_q4_k *block, size_t row, struct dequant_panel *panel)
{
    panel->d[0][row] = dequant_f16_to_f32(block->d);
    panel->m[0][row] = -dequant_f16_to_f32(block->m);
    set_k_scales(&block->scales, row, panel);
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++)
        panel_set_q(panel, row, i, block->qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15);
}

static void q5_k_row(const struct dequant_q5_k *block, size_t row, struct dequant_panel *panel)
{
    panel->d[0][row] = dequant_f16_to_f32(block->d);
    panel->m[0][row] = -dequant_f16_to_f32(block->m);
    set_k_scales(&block->scales, row, panel);
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++) {
        const int low = block->qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15;

        panel_set_q(panel, row, i, low | (block->qh[i % 32] >> i / 32 & 1) << 4);
    }
}

static void q6_k_row(const struct dequant_q6_k *block, size_t row, struct dequant_panel *panel)
{
    panel->d[0][row] = dequant_f16_to_f32(block->d);
    for (size_t s = 0; s < DEQUANT_SUPERBLOCK / 16; s++) {
        panel_set_scale(panel, row, s, block->scales[s]);
        panel_set_min(panel, row, s, block->scales[s] * 32);
    }
    for (size_t i = 0; i < DEQUANT_SUPERBLOCK; i++) {
        const int low = block->ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
        const int high = block->qh[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;

        panel_set_q(panel, row, i, low | high << 4);
    }
}

PANEL_DEFINE_UNPACKER(q4_k)
PANEL_DEFINE_UNPACKER(q5_k)
PANEL_DEFINE_UNPACKER(q6_k)
