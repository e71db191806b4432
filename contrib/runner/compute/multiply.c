#include "contrib/runner/compute/multiply.h"

#include "contrib/runner/compute/thread_pool.h"
#include "dequant/kernels.h"
#include "dequant/products.h"
#include "dequant/rows.h"

#include <string.h>

/*
 * Multiplications in a piece of work: of floats, and of integers, which are faster. A thread
 * fetches the rows that follow, so pieces of integers are large if there are enough of them for all
 * threads.
 */
#define PIECE_PRODUCTS               32768
#define LEAST_PIECE_INTEGER_PRODUCTS 131072
#define MOST_PIECE_INTEGER_PRODUCTS  1048576
#define PIECES_PER_THREAD            4

static bool in_floats;

void run_multiply_in_floats(bool chosen)
{
    in_floats = chosen;
}

/* ---- in floats ---- */

/* Rows decoded together, and elements of each: they fit the L1 and L2 caches. */
enum { TILE_ROWS = 4, TILE_ELEMENTS = 1024 };

/* Columns that are multiplied by a tile: their elements stay in the L2 cache. */
enum { TILE_COLUMNS = 64 };

/* Tiles that one thread multiplies by the same columns. */
enum { PIECE_TILES = 8 };

/* Columns up to which converting numbers anew for each of them costs less than a tile. */
enum { MOST_COLUMNS_IN_PLACE = 4 };

/*
 * Return true if weights are multiplied in place: floats, and for few columns other numbers. An old
 * model file may not align them.
 */
static bool is_in_place(const struct run_tensor *weights, size_t n)
{
    return weights->type->dot[DEQUANT_SET_scalar] &&
           (uintptr_t)weights->data % weights->type->block_bytes == 0 &&
           (weights->type->id == DEQUANT_F32 || n <= MOST_COLUMNS_IN_PLACE);
}

/* Adds the products with elements `first` to `first` + n_elements of n_rows rows. */
static void multiply_tile(const struct run_tensor *weights, uint64_t row, size_t n_rows,
                          size_t first, size_t n_elements, const float *x, size_t n, float *out)
{
    const uint64_t rows = run_tensor_rows(weights);
    const size_t width = weights->ne[0], number_bytes = weights->type->block_bytes;
    float tile[TILE_ROWS * TILE_ELEMENTS];

    if (is_in_place(weights, n)) {
        dequant_dot_rows(
            weights->type,
            weights->data + ((weights->first_row + row) * width + first) * number_bytes,
            width * number_bytes, n_rows, x + first, width, n, n_elements, out + row, rows);
        return;
    }
    for (size_t r = 0; r < n_rows; r++)
        run_tensor_decode(weights, row + r, first, n_elements, tile + r * TILE_ELEMENTS);
    dequant_dot(tile, TILE_ELEMENTS, n_rows, x + first, width, n, n_elements, out + row, rows);
}

/* A product in floats. */
struct call {
    const struct run_tensor *weights;
    const float *x;
    size_t n;
    float *out;
};

/* Multiply groups of TILE_ROWS rows by some of the columns. */
static void multiply_groups_by(const struct call *call, size_t first_group, size_t end_group,
                               size_t first_column, size_t n_columns)
{
    const uint64_t rows = run_tensor_rows(call->weights), width = call->weights->ne[0];

    for (uint64_t row = first_group * TILE_ROWS; row < end_group * TILE_ROWS && row < rows;
         row += TILE_ROWS) {
        const size_t n_rows = rows - row < TILE_ROWS ? rows - row : TILE_ROWS;

        for (size_t first = 0; first < width; first += TILE_ELEMENTS)
            multiply_tile(call->weights, row, n_rows, first,
                          width - first < TILE_ELEMENTS ? width - first : TILE_ELEMENTS,
                          call->x + first_column * width, n_columns,
                          call->out + first_column * rows);
    }
}

static void multiply_groups(void *context, size_t first_group, size_t end_group)
{
    const struct call *call = context;

    for (size_t column = 0; column < call->n; column += TILE_COLUMNS)
        multiply_groups_by(call, first_group, end_group, column,
                           call->n - column < TILE_COLUMNS ? call->n - column : TILE_COLUMNS);
}

static void multiply_floats(const struct run_tensor *weights, const float *x, size_t n, float *out)
{
    const uint64_t rows = run_tensor_rows(weights);
    const size_t grain = run_grain(PIECE_PRODUCTS, TILE_ROWS * weights->ne[0] * n);
    struct call call = {weights, x, n, out};

    memset(out, 0, n * rows * sizeof *out);
    run_parallel_for((rows + TILE_ROWS - 1) / TILE_ROWS,
                     n > TILE_COLUMNS && grain < PIECE_TILES ? PIECE_TILES : grain, multiply_groups,
                     &call);
}

/* ---- in integers ---- */

/*
 * The activations of a block of columns, which stay in the L2 cache while rows are multiplied by
 * them: up to MOST_COLUMNS columns, as many as fit, or one of up to MOST_ACTIVATIONS * 256
 * elements. Those of all columns that meet a panel lie together.
 */
enum { MOST_ACTIVATIONS = 2048, MOST_COLUMNS = 256 };
static struct dequant_activations activations[MOST_ACTIVATIONS];

/* Weights that are multiplied by the same block of columns. */
struct products {
    const struct run_product *list;
    const float *x;
    size_t first_column, n_columns, n_panels;
};

static uint64_t row_groups(const struct run_tensor *weights)
{
    return (run_tensor_rows(weights) + DEQUANT_PANEL_ROWS - 1) / DEQUANT_PANEL_ROWS;
}

/* Bring the bytes from `next` on into the cache, as many as a panel takes up. */
static void prefetch(const struct dequant_type *type, const uint8_t *next)
{
    enum { LINE_BYTES = 64 };
    const size_t n_bytes = (size_t)DEQUANT_PANEL_ROWS * DEQUANT_PANEL_ELEMENTS /
                           type->block_elements * type->block_bytes;

    for (size_t i = 0; i < n_bytes; i += LINE_BYTES)
        __builtin_prefetch(next + i, 0, 2);
}

/* Bring the places of columns `first` to `end` of a group of rows, a line each, into the cache. */
static void prefetch_results(const float *out, size_t stride, size_t first, size_t end)
{
    for (size_t c = first; c < end; c++)
        __builtin_prefetch(out + c * stride, 1, 2);
}

/* The products of up to DEQUANT_PANEL_ROWS rows from `row` on with all columns. */
static void multiply_rows(const struct products *products, const struct run_product *product,
                          uint64_t row)
{
    const struct run_tensor *weights = &product->weights;
    const struct dequant_type *type = weights->type;
    const uint64_t rows = run_tensor_rows(weights), width = weights->ne[0];
    const size_t row_bytes = width / type->block_elements * type->block_bytes;
    const uint8_t *first_row = weights->data + (weights->first_row + row) * row_bytes;
    const size_t n_rows = rows - row < DEQUANT_PANEL_ROWS ? rows - row : DEQUANT_PANEL_ROWS;
    const size_t n_columns = products->n_columns;
    float sums[MOST_COLUMNS][DEQUANT_PANEL_ROWS];
    float *out = product->out + products->first_column * rows + row;

    memset(sums, 0, n_columns * sizeof *sums);
    if (n_columns == 1)
        dequant_multiply_column(type, first_row, row_bytes, n_rows, width, activations, sums[0]);
    /* A panel stays in the L1 cache while the columns come from the L2 cache. */
    for (size_t i = 0; i < products->n_panels && n_columns > 1; i++) {
        struct dequant_panel panel;

        prefetch(type, first_row +
                           DEQUANT_PANEL_ROWS * (row_bytes + i * (row_bytes / products->n_panels)));
        prefetch_results(out, rows, i * n_columns / products->n_panels,
                         (i + 1) * n_columns / products->n_panels);
        dequant_unpack(type, first_row, row_bytes, n_rows, width, i, &panel);
        dequant_multiply(&type->product->form, &panel, activations + i * n_columns, n_columns,
                         sums);
    }
    for (size_t c = 0; c < n_columns; c++, out += rows) {
        /* With a constant size, the compiler inlines the copy. */
        if (n_rows == DEQUANT_PANEL_ROWS)
            memcpy(out, sums[c], sizeof sums[c]);
        else
            memcpy(out, sums[c], n_rows * sizeof *out);
    }
}

static void quantize_column(void *context, size_t column)
{
    const struct products *products = context;
    const struct run_tensor *weights = &products->list[0].weights;
    const size_t width = weights->ne[0];

    dequant_quantize(&weights->type->product->form,
                     products->x + (products->first_column + column) * width, width,
                     activations + column, products->n_columns);
}

/* Multiply a group of DEQUANT_PANEL_ROWS rows, counted through the products in order. */
static void multiply_panel(void *context, size_t group)
{
    const struct products *products = context;
    const struct run_product *product = products->list;

    for (; group >= row_groups(&product->weights); product++)
        group -= row_groups(&product->weights);
    multiply_rows(products, product, group * DEQUANT_PANEL_ROWS);
}

/* Return the groups of rows in a piece, whose products are group_products each. */
static size_t piece_groups(uint64_t n_groups, size_t group_products)
{
    const size_t least = run_grain(LEAST_PIECE_INTEGER_PRODUCTS, group_products);
    const size_t most = run_grain(MOST_PIECE_INTEGER_PRODUCTS, group_products);
    const size_t shared = n_groups / PIECES_PER_THREAD / run_thread_pool_size();

    return shared < least ? least : shared > most ? most : shared;
}

/* Multiply weights whose activations are quantized alike. */
static void multiply_integers(const struct run_product *list, size_t n_products, const float *x,
                              size_t n)
{
    const uint64_t width = list[0].weights.ne[0];
    const size_t n_panels = dequant_activations_count(width);
    const size_t that_fit = MOST_ACTIVATIONS / n_panels;
    const size_t most = that_fit < MOST_COLUMNS ? that_fit : MOST_COLUMNS;
    uint64_t n_groups = 0;

    for (size_t i = 0; i < n_products; i++)
        n_groups += row_groups(&list[i].weights);
    for (size_t first = 0; first < n; first += most) {
        struct products products = {
            .list = list,
            .x = x,
            .first_column = first,
            .n_columns = n - first < most ? n - first : most,
            .n_panels = n_panels,
        };

        run_parallel_for_each(products.n_columns, run_grain(PIECE_PRODUCTS, width), quantize_column,
                              &products);
        run_parallel_for_each(
            n_groups, piece_groups(n_groups, DEQUANT_PANEL_ROWS * width * products.n_columns),
            multiply_panel, &products);
    }
}

static bool is_in_integers(const struct run_tensor *weights)
{
    return !in_floats && dequant_multiplies_integers(weights->type) &&
           dequant_activations_count(weights->ne[0]) <= MOST_ACTIVATIONS;
}

/* Return true if the activations of both are quantized alike. */
static bool are_alike(const struct run_tensor *a, const struct run_tensor *b)
{
    return is_in_integers(a) && is_in_integers(b) &&
           dequant_block_elements(&a->type->product->form) ==
               dequant_block_elements(&b->type->product->form);
}

void run_multiply(const struct run_product *products, size_t n_products, const float *x, size_t n)
{
    for (size_t i = 0, end; i < n_products; i = end) {
        end = i + 1;
        while (end < n_products && are_alike(&products[i].weights, &products[end].weights))
            end++;
        if (is_in_integers(&products[i].weights))
            multiply_integers(products + i, end - i, x, n);
        else
            multiply_floats(&products[i].weights, x, n, products[i].out);
    }
}
