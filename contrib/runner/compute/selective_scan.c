#include "contrib/runner/compute/selective_scan.h"

#include "contrib/runner/compute/activation.h"
#include "contrib/runner/compute/run_kernels.h"
#include "contrib/runner/compute/thread_pool.h"

#include <math.h>

/* State elements in a piece of work: Mamba 2, and Mamba, which computes an exponential for each. */
enum { PIECE_ELEMENTS = 16384, PIECE_EXPONENTIALS = 4096 };

/* The arguments of a scan. */
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

void run_scan_mamba(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out)
{
    struct scan_call call = {scan, rows, n, out};

    run_parallel_for_each(scan->n_heads, run_grain(PIECE_EXPONENTIALS, n * scan->n_state),
                          scan_channel, &call);
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

void run_scan_mamba2(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out)
{
    struct scan_call call = {scan, rows, n, out};

    run_parallel_for_each(scan->n_heads, run_grain(PIECE_ELEMENTS, n * scan->n_state * scan->width),
                          scan_head, &call);
}
