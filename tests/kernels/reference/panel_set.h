/* Setting single values of a panel, for the reference unpackers. */
#pragma once

#include "dequant/forms.h"

static inline void panel_set_q(struct dequant_panel *panel, size_t row, size_t element, int q)
{
    panel->q[element / 4][row][element % 4] = (uint8_t)q;
}

static inline void panel_set_scale(struct dequant_panel *panel, size_t row, size_t group, int scale)
{
    panel->scales[group][row][0] = panel->scales[group][row][1] = (int16_t)scale;
}

static inline void panel_set_min(struct dequant_panel *panel, size_t row, size_t group, int min)
{
    panel->mins[group / 2][row][group % 2] = (int16_t)min;
}

/* For a type with a zero point. */
static inline void panel_set_scale_of_zero(struct dequant_panel *panel, size_t row, size_t group,
                                           int scale, int zero)
{
    panel_set_scale(panel, row, group, scale);
    panel_set_min(panel, row, group, scale * zero);
}

/* Return block `index` of row `row`; blocks have block_bytes. */
static inline const void *panel_block(const void *rows, size_t row_bytes, size_t row, size_t index,
                                      size_t block_bytes)
{
    return (const uint8_t *)rows + row * row_bytes + index * block_bytes;
}

/*
 * Defines the unpacker of a type as a loop over the static function TYPE_row, which unpacks the
 * struct dequant_TYPE blocks of 256 elements to row `row` of the panel.
 */
#define PANEL_DEFINE_UNPACKER(type)                                                                \
    void reference_unpack_##type(const void *rows, size_t row_bytes, struct dequant_panel *panel)  \
    {                                                                                              \
        const uint8_t *blocks = rows;                                                              \
                                                                                                   \
        for (size_t row = 0; row < DEQUANT_PANEL_ROWS; row++)                                      \
            type##_row((const void *)(blocks + row * row_bytes), row, panel);                      \
    }
