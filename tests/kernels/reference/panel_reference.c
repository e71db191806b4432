#include "tests/kernels/reference/panel_reference.h"

#include "dequant/products.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW(type, name) {type, reference_unpack_##name},

static const struct {
    const char *type;
    dequant_unpack_fn *unpack;
} unpackers[] = {REFERENCE_UNPACKERS(ROW)};

void reference_quantize_column(const struct dequant_form *form, const float *x, size_t n,
                               struct dequant_activations *out, size_t stride)
{
    for (size_t i = 0; i < dequant_activations_count(n); i++) {
        const size_t first = i * DEQUANT_PANEL_ELEMENTS, left = n - first;
        float part[DEQUANT_PANEL_ELEMENTS] = {0};

        memcpy(part, x + first,
               (left < DEQUANT_PANEL_ELEMENTS ? left : DEQUANT_PANEL_ELEMENTS) * sizeof *x);
        reference_quantize(part, dequant_block_elements(form), &out[i * stride]);
    }
}

void reference_unpack(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                      size_t n_rows, size_t n_elements, size_t index, struct dequant_panel *panel)
{
    enum { MAX_ROW_BYTES = 512 };
    uint8_t padded[DEQUANT_PANEL_ROWS][MAX_ROW_BYTES] = {{0}};
    const size_t first = index * DEQUANT_PANEL_ELEMENTS, left = n_elements - first;
    const size_t n = left < DEQUANT_PANEL_ELEMENTS ? left : DEQUANT_PANEL_ELEMENTS;
    size_t i = 0;

    for (size_t r = 0; r < n_rows; r++)
        memcpy(padded[r], rows + r * row_bytes + first / type->block_elements * type->block_bytes,
               n / type->block_elements * type->block_bytes);
    while (strcmp(unpackers[i].type, type->name) != 0)
        if (++i == sizeof unpackers / sizeof *unpackers) {
            fprintf(stderr, "%s has no row in panel_reference.h\n", type->name);
            abort();
        }
    unpackers[i].unpack(padded, MAX_ROW_BYTES, panel);
}
