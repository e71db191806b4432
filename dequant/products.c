#include "dequant/products.h"

#include "dequant/kernels.h"
#include "dequant/slots.h"

#include <assert.h>
#include <string.h>

/* The bytes of DEQUANT_PANEL_ELEMENTS elements are at most these, of Q8_0. */
enum { MAX_ROW_BYTES = 272 };

#define SET(set, unused) [DEQUANT_SET_##set] = {dequant_##set##_quantize, dequant_##set##_multiply},

static const struct {
    dequant_quantize_fn *quantize;
    dequant_multiply_fn *multiply;
} functions[DEQUANT_SETS] = {[DEQUANT_SET_scalar] = {NULL, NULL}, DEQUANT_VECTOR_SETS(SET, )};

bool dequant_multiplies_integers(const struct dequant_type *type)
{
    return type->product && type->product->unpack[dequant_product_set()];
}

void dequant_quantize(const struct dequant_form *form, const float *x, size_t n,
                      struct dequant_activations *out, size_t stride)
{
    dequant_quantize_fn *quantize = functions[dequant_product_set()].quantize;
    const size_t block_elements = dequant_block_elements(form);
    float rest[DEQUANT_PANEL_ELEMENTS] = {0};

    for (; n >= DEQUANT_PANEL_ELEMENTS; n -= DEQUANT_PANEL_ELEMENTS) {
        quantize(x, block_elements, out);
        x += DEQUANT_PANEL_ELEMENTS;
        out += stride;
    }
    if (n > 0) {
        memcpy(rest, x, n * sizeof *x);
        quantize(rest, block_elements, out);
    }
}

/* Unpack a panel that the tensor does not fill: its blocks among others that are 0. */
static void unpack_rest(const struct dequant_type *type, dequant_unpack_fn *unpack,
                        const uint8_t *blocks, size_t row_bytes, size_t n_rows, size_t n_elements,
                        struct dequant_panel *panel)
{
    const size_t n_bytes = n_elements / type->block_elements * type->block_bytes;
    uint8_t rows[DEQUANT_PANEL_ROWS][MAX_ROW_BYTES] = {0};

    assert(n_bytes <= MAX_ROW_BYTES);
    for (size_t r = 0; r < n_rows; r++)
        memcpy(rows[r], blocks + r * row_bytes, n_bytes);
    unpack(rows, MAX_ROW_BYTES, panel);
}

void dequant_unpack(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                    size_t n_rows, size_t n_elements, size_t index, struct dequant_panel *panel)
{
    const size_t left = n_elements - index * DEQUANT_PANEL_ELEMENTS;
    const size_t panel_bytes =
        (size_t)DEQUANT_PANEL_ELEMENTS / type->block_elements * type->block_bytes;
    const uint8_t *blocks = rows + index * panel_bytes;
    dequant_unpack_fn *unpack = type->product->unpack[dequant_product_set()];

    if (n_rows == DEQUANT_PANEL_ROWS && left >= DEQUANT_PANEL_ELEMENTS)
        unpack(blocks, row_bytes, panel);
    else
        unpack_rest(type, unpack, blocks, row_bytes, n_rows,
                    left < DEQUANT_PANEL_ELEMENTS ? left : DEQUANT_PANEL_ELEMENTS, panel);
}

void dequant_multiply(const struct dequant_form *form, const struct dequant_panel *panel,
                      const struct dequant_activations *x, size_t n_columns,
                      float sums[][DEQUANT_PANEL_ROWS])
{
    functions[dequant_product_set()].multiply(form, panel, x, n_columns, sums);
}

void dequant_multiply_column(const struct dequant_type *type, const uint8_t *rows, size_t row_bytes,
                             size_t n_rows, size_t n_elements, const struct dequant_activations *x,
                             float sums[DEQUANT_PANEL_ROWS])
{
    const struct dequant_product *product = type->product;
    dequant_multiply_column_fn *multiply = product->multiply_column[dequant_product_set()];

    if (n_rows == DEQUANT_PANEL_ROWS && n_elements % DEQUANT_SCALED_ELEMENTS == 0) {
        multiply(rows, row_bytes, n_elements, x, sums);
        return;
    }
    for (size_t i = 0; i < dequant_activations_count(n_elements); i++) {
        struct dequant_panel panel;

        dequant_unpack(type, rows, row_bytes, n_rows, n_elements, i, &panel);
        dequant_multiply(&product->form, &panel, x + i, 1, (float(*)[DEQUANT_PANEL_ROWS])sums);
    }
}
