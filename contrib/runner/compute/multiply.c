#include "contrib/runner/compute/multiply.h"

#include "dequant/kernels.h"

#include <string.h>

/* Rows decoded together, and elements of each: they fit the L1 and L2 caches. */
enum { TILE_ROWS = 8, TILE_ELEMENTS = 1024 };

/* With fewer elements, a team of threads costs more than it saves. */
#define PARALLEL_ELEMENTS ((uint64_t)1 << 16)

/*
 * Return F32 weights, which are multiplied in place, or NULL for other types. Mappings begin at a
 * page, so floats are aligned.
 */
static const float *plain_floats(const struct run_tensor *weights)
{
    return weights->type->id == DEQUANT_F32 && (uintptr_t)weights->data % sizeof(float) == 0
               ? (const float *)(const void *)weights->data
               : NULL;
}

/* Adds the products with elements `first` to `first` + n_elements of n_rows rows. */
static void multiply_tile(const struct run_tensor *weights, uint64_t row, size_t n_rows,
                          size_t first, size_t n_elements, const float *x, size_t n, float *out)
{
    const uint64_t rows = run_tensor_rows(weights);
    const size_t width = weights->ne[0];
    const float *floats = plain_floats(weights);
    float tile[TILE_ROWS * TILE_ELEMENTS];

    if (floats) {
        dequant_dot(floats + row * width + first, width, n_rows, x + first, width, n, n_elements,
                    out + row, rows);
        return;
    }
    for (size_t r = 0; r < n_rows; r++)
        run_tensor_decode(weights, row + r, first, n_elements, tile + r * TILE_ELEMENTS);
    dequant_dot(tile, TILE_ELEMENTS, n_rows, x + first, width, n, n_elements, out + row, rows);
}

void run_multiply(const struct run_tensor *weights, const float *x, size_t n, float *out)
{
    const uint64_t rows = run_tensor_rows(weights), width = weights->ne[0];
    const bool is_large = rows * width * n > PARALLEL_ELEMENTS;

    memset(out, 0, n * rows * sizeof *out);
    (void)is_large; /* unused without OpenMP */
#pragma omp parallel for schedule(static) if (is_large)
    for (uint64_t row = 0; row < rows; row += TILE_ROWS) {
        const size_t n_rows = rows - row < TILE_ROWS ? rows - row : TILE_ROWS;

        for (size_t first = 0; first < width; first += TILE_ELEMENTS)
            multiply_tile(weights, row, n_rows, first,
                          width - first < TILE_ELEMENTS ? width - first : TILE_ELEMENTS, x, n, out);
    }
}
