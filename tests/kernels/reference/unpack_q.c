/* The reference for unpacking types with a scale per 32 elements; dequant/blocks.h has them. */
#include "dequant/blocks.h"
#include "dequant/slots.h"
#include "dequant/small_floats.h"
#include "tests/kernels/reference/panel_reference.h"
#include "tests/kernels/reference/panel_set.h"

enum { BLOCKS = DEQUANT_PANEL_ELEMENTS / DEQUANT_BLOCK };

/* The nibble of element i: the lower one for 0 to 15. */
static int nibble(const uint8_t *qs, size_t i)
{
    return qs[i % 16] >> (i / 16 * 4) & 15;
}

static int fifth_bit(const uint8_t *qh, size_t i)
{
    return (qh[i / 8] >> i % 8 & 1) << 4;
}

static void q4_0_row(const struct dequant_q4_0 *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i, nibble(blocks[b].qs, i));
    }
}

static void q4_1_row(const struct dequant_q4_1 *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        panel->m[b][row] = dequant_f16_to_f32(blocks[b].m);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i, nibble(blocks[b].qs, i));
    }
}

static void q5_0_row(const struct dequant_q5_0 *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i,
                        nibble(blocks[b].qs, i) | fifth_bit(blocks[b].qh, i));
    }
}

static void q5_1_row(const struct dequant_q5_1 *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        panel->m[b][row] = dequant_f16_to_f32(blocks[b].m);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i,
                        nibble(blocks[b].qs, i) | fifth_bit(blocks[b].qh, i));
    }
}

static void q8_0_row(const struct dequant_q8_0 *blocks, size_t row, struct dequant_panel *panel)
{
    for (size_t b = 0; b < BLOCKS; b++) {
        panel->d[b][row] = dequant_f16_to_f32(blocks[b].d);
        for (size_t i = 0; i < DEQUANT_BLOCK; i++)
            panel_set_q(panel, row, DEQUANT_BLOCK * b + i, blocks[b].qs[i] + 128);
    }
}

PANEL_DEFINE_UNPACKER(q4_0)
PANEL_DEFINE_UNPACKER(q4_1)
PANEL_DEFINE_UNPACKER(q5_0)
PANEL_DEFINE_UNPACKER(q5_1)
PANEL_DEFINE_UNPACKER(q8_0)
