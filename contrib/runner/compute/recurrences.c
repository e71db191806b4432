#include "contrib/runner/compute/recurrences.h"

#include "contrib/runner/compute/activation.h"
#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

#include <math.h>
#include <string.h>

/* The columns of a state are independent; TILE of them are computed together. */
enum { TILE = 64 };

/*
 * Work in a piece: products of a convolution, elements of states, elements with an exponential, and
 * channels of RWKV 4, which have four exponentials each.
 */
enum {
    PIECE_PRODUCTS = 65536,
    PIECE_ELEMENTS = 16384,
    PIECE_EXPONENTIALS = 4096,
    PIECE_CHANNELS = 1024,
};

/* ---- convolution ---- */

struct convolve_call {
    const struct run_convolution *convolution;
    const float *x;
    size_t stride;
    float *out;
};

static void convolve_token(void *context, size_t token)
{
    const struct convolve_call *call = context;
    const struct run_convolution *convolution = call->convolution;
    const size_t n_channels = convolution->n_channels, n_before = convolution->n_taps - 1;
    float *restrict out = call->out + token * n_channels;

    if (convolution->bias)
        memcpy(out, convolution->bias, n_channels * sizeof *out);
    else
        memset(out, 0, n_channels * sizeof *out);
    for (size_t k = 0; k <= n_before; k++) {
        const float *restrict taps = convolution->taps + k * n_channels;
        const float *restrict row = token + k < n_before
                                        ? convolution->past + (token + k) * n_channels
                                        : call->x + (token + k - n_before) * call->stride;

#pragma omp simd
        for (size_t c = 0; c < n_channels; c++)
            out[c] += taps[c] * row[c];
    }
}

/* Keep the last rows of past and x for the next call. */
static void remember(struct run_convolution *convolution, const float *x, size_t stride, size_t n)
{
    const size_t n_channels = convolution->n_channels, n_before = convolution->n_taps - 1;
    const size_t n_kept = n < n_before ? n_before - n : 0;

    if (n_kept > 0)
        memmove(convolution->past, convolution->past + n * n_channels,
                n_kept * n_channels * sizeof(float));
    for (size_t i = n_kept; i < n_before; i++)
        memcpy(convolution->past + i * n_channels, x + (n + i - n_before) * stride,
               n_channels * sizeof(float));
}

void run_convolve(struct run_convolution *convolution, const float *x, size_t stride, size_t n,
                  float *out)
{
    struct convolve_call call = {convolution, x, stride, out};

    run_parallel_for_each(n,
                          run_grain(PIECE_PRODUCTS, convolution->n_channels * convolution->n_taps),
                          convolve_token, &call);
    remember(convolution, x, stride, n);
}

/* ---- the delta rule ---- */

struct delta_call {
    const struct run_delta_rule *rule;
    const struct run_delta_rows *rows;
    size_t n, n_tiles; /* tokens, and tiles of a head */
    float *out;
};

static void delta_tile(void *context, size_t tile)
{
    const struct delta_call *call = context;
    const size_t head = tile / call->n_tiles, first = tile % call->n_tiles * TILE;
    const struct run_delta_rule *rule = call->rule;
    const struct run_delta_rows *rows = call->rows;
    const size_t width_k = rule->width_k, width_v = rule->width_v;
    const size_t width = width_v - first < TILE ? width_v - first : TILE;
    const size_t head_k =
        rule->keys_take_turns ? head % rule->n_heads_k : head / (rule->n_heads / rule->n_heads_k);
    float *columns = rule->state + head * width_k * width_v + first;

    for (size_t token = 0; token < call->n; token++) {
        const size_t at = token * rows->stride, row = token * rule->n_heads + head;

        const struct run_delta_token input = {
            .n_rows = width_k,
            .q = rows->q + at + head_k * width_k,
            .k = rows->k + at + head_k * width_k,
            .v = rows->v + at + head * width_v + first,
            .decay = rows->decay + row * rule->n_decays,
            .decay_stride = rule->n_decays > 1,
            .beta = rows->beta[row],
        };

        run_kernels()->delta_step(columns, width_v, width, &input,
                                  call->out + row * width_v + first);
    }
}

void run_delta_rule(struct run_delta_rule *rule, const struct run_delta_rows *rows, size_t n,
                    float *out)
{
    struct delta_call call = {rule, rows, n, (rule->width_v + TILE - 1) / TILE, out};

    run_parallel_for_each(rule->n_heads * call.n_tiles,
                          run_grain(PIECE_ELEMENTS, n * rule->width_k * TILE), delta_tile, &call);
}

/* ---- selective scans ---- */

struct scan_call {
    struct run_scan *scan;
    const struct run_scan_rows *rows;
    size_t n;
    float *out;
};

static size_t group_at(const struct run_scan *scan, size_t head)
{
    return head / (scan->n_heads / scan->n_groups) * scan->n_state;
}

static void scan_channel(void *context, size_t head)
{
    const struct scan_call *call = context;
    struct run_scan *scan = call->scan;
    const struct run_scan_rows *rows = call->rows;
    const size_t n_state = scan->n_state, at = group_at(scan, head);
    const float *a = scan->a + head * n_state;
    float *state = scan->state + head * n_state;

    for (size_t token = 0; token < call->n; token++) {
        const float x = rows->x[token * rows->x_stride + head];
        const float step = run_softplus(rows->dt[token * rows->dt_stride + head]);
        const float y =
            run_kernels()->scan_channel(state, n_state, a, rows->b + token * rows->bc_stride + at,
                                        rows->c + token * rows->bc_stride + at, step, x);

        call->out[token * scan->n_heads + head] = y + scan->d[head] * x;
    }
}

static void scan_head(void *context, size_t head)
{
    const struct scan_call *call = context;
    struct run_scan *scan = call->scan;
    const struct run_scan_rows *rows = call->rows;
    const size_t n_state = scan->n_state, width = scan->width, at = group_at(scan, head);
    float *states = scan->state + head * n_state * width;

    for (size_t token = 0; token < call->n; token++) {
        const float step = run_softplus(rows->dt[token * rows->dt_stride + head]);
        const struct run_scan_token input = {
            .n_rows = n_state,
            .x = rows->x + token * rows->x_stride + head * width,
            .b = rows->b + token * rows->bc_stride + at,
            .c = rows->c + token * rows->bc_stride + at,
            .step = step,
            .decay = expf(step * scan->a[head]),
            .d = scan->d[head],
        };

        run_kernels()->scan_step(states, width, width, &input,
                                 call->out + (token * scan->n_heads + head) * width);
    }
}

void run_scan(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out)
{
    struct scan_call call = {scan, rows, n, out};

    run_parallel_for_each(scan->n_heads,
                          run_grain(scan->is_mamba2 ? PIECE_ELEMENTS : PIECE_EXPONENTIALS,
                                    n * scan->n_state * scan->width),
                          scan->is_mamba2 ? scan_head : scan_channel, &call);
}

/* ---- RWKV ---- */

struct wkv4_call {
    const struct run_wkv4 *wkv;
    const float *decay, *bonus, *keys, *values;
    size_t n;
    float *out;
};

static void walk_channels(void *context, size_t first_tile, size_t end_tile)
{
    const struct wkv4_call *call = context;
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
    struct wkv4_call call = {wkv, decay, bonus, keys, values, n, out};

    run_parallel_for((wkv->width + TILE - 1) / TILE, run_grain(PIECE_CHANNELS, n * TILE),
                     walk_channels, &call);
}

struct wkv_call {
    const struct run_wkv *wkv;
    const struct run_wkv_input *input;
    run_wkv_step_fn *step;
    size_t n, n_tiles; /* tokens, and tiles of a head */
    float *out;
};

/* Compute all tokens for a tile of a head's columns, from `first` on. */
static void walk_tile(void *context, size_t tile)
{
    const struct wkv_call *call = context;
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

void run_wkv(const struct run_wkv *wkv, const struct run_wkv_input *input, size_t n, float *out)
{
    run_wkv_step_fn *const steps[] = {
        [RUN_WKV6] = run_kernels()->wkv6_step,
        [RUN_WKV7] = run_kernels()->wkv7_step,
        [RUN_GATED_LINEAR] = run_kernels()->linear_step,
    };
    struct wkv_call call = {wkv, input, steps[wkv->rule], n, (wkv->width + TILE - 1) / TILE, out};

    run_parallel_for_each(wkv->n_head * call.n_tiles,
                          run_grain(PIECE_ELEMENTS, n * wkv->width * TILE), walk_tile, &call);
}
