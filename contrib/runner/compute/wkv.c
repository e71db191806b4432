#include "contrib/runner/compute/wkv.h"

#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

/* The columns of a state are independent; TILE of them are computed together. */
enum { TILE = 64 };

/* Elements in a piece of work: of states, and in version 4 of rows, each with four exponentials. */
enum { PIECE_ELEMENTS = 16384, PIECE_EXPONENTIALS = 1024 };

/* The arguments of run_wkv4(). */
struct call_4 {
    const struct run_wkv4 *wkv;
    const float *decay, *bonus, *keys, *values;
    size_t n;
    float *out;
};

static void walk_channels(void *context, size_t first_tile, size_t end_tile)
{
    const struct call_4 *call = context;
    const size_t width = call->wkv->width, first = first_tile * TILE;
    const size_t end = end_tile * TILE < width ? end_tile * TILE : width;
    float *numerators = call->wkv->sums, *denominators = numerators + width;
    float *exponents = call->wkv->exponents;

    for (size_t t = 0; t < call->n; t++)
        run_kernels()->wkv4_step(numerators + first, denominators + first, exponents + first,
                                 end - first, call->decay + first, call->bonus + first,
                                 call->keys + t * width + first, call->values + t * width + first,
                                 call->out + t * width + first);
}

void run_wkv4(const struct run_wkv4 *wkv, const float *decay, const float *bonus, const float *keys,
              const float *values, size_t n, float *out)
{
    struct call_4 call = {wkv, decay, bonus, keys, values, n, out};

    run_parallel_for((wkv->width + TILE - 1) / TILE, run_grain(PIECE_EXPONENTIALS, n * TILE),
                     walk_channels, &call);
}

/* The arguments of the later versions. */
struct call {
    const struct run_wkv *wkv;
    const struct run_wkv_input *input;
    run_wkv_step_fn *step;
    size_t n, n_tiles; /* tokens, and tiles of a head */
    float *out;
};

/* Compute all tokens for a tile of a head's columns, from `first` on. */
static void walk_tile(void *context, size_t tile)
{
    const struct call *call = context;
    const size_t head = tile / call->n_tiles, first = tile % call->n_tiles * TILE;
    const struct run_wkv_input *input = call->input;
    const size_t width = call->wkv->width;
    const size_t n_columns = width - first < TILE ? width - first : TILE;

    for (size_t t = 0; t < call->n; t++) {
        const size_t at = (t * call->wkv->n_head + head) * width;
        const struct run_wkv_token token = {
            .n_rows = width,
            .r = input->r + at,
            .k = input->k + at,
            .v = input->v + at + first,
            .w = input->w + t * input->w_stride + head * width,
            .u = input->u ? input->u + head * width : NULL,
            .a = input->a ? input->a + at : NULL,
            .b = input->b ? input->b + at : NULL,
        };

        call->step(call->wkv->state + head * width * width + first, width, n_columns, &token,
                   call->out + at + first);
    }
}

static void walk(const struct run_wkv *wkv, const struct run_wkv_input *input,
                 run_wkv_step_fn *step, size_t n, float *out)
{
    struct call call = {wkv, input, step, n, (wkv->width + TILE - 1) / TILE, out};

    run_parallel_for_each(wkv->n_head * call.n_tiles,
                          run_grain(PIECE_ELEMENTS, n * wkv->width * TILE), walk_tile, &call);
}

void run_wkv6(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out)
{
    walk(wkv, input, run_kernels()->wkv6_step, n, out);
}

void run_gated_linear_attention(const struct run_wkv *wkv, const struct run_wkv_input *input,
                                size_t n, float *out)
{
    walk(wkv, input, run_kernels()->linear_step, n, out);
}

void run_wkv7(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out)
{
    walk(wkv, input, run_kernels()->wkv7_step, n, out);
}
