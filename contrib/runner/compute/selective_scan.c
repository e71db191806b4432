#include "contrib/runner/compute/selective_scan.h"

#include "contrib/runner/compute/activation.h"

#include <math.h>
#include <string.h>

/* With fewer elements of states, a team of threads costs more than it saves. */
#define PARALLEL_ELEMENTS 16384

static size_t group_at(const struct run_scan *scan, size_t head)
{
    return head / (scan->n_heads / scan->n_groups) * scan->n_state;
}

static void scan_channel(struct run_scan *scan, const struct run_scan_rows *rows, size_t head,
                         size_t n, float *out)
{
    const size_t n_state = scan->n_state, at = group_at(scan, head);
    const float *a = scan->a + head * n_state;
    float *state = scan->state + head * n_state;

    for (size_t token = 0; token < n; token++) {
        const float x = rows->x[token * rows->x_stride + head];
        const float step = run_softplus(rows->dt[token * rows->dt_stride + head]);
        const float *b = rows->b + token * rows->bc_stride + at;
        const float *c = rows->c + token * rows->bc_stride + at;
        const float input = step * x;
        float y = 0;

        for (size_t i = 0; i < n_state; i++) {
            state[i] = state[i] * expf(step * a[i]) + b[i] * input;
            y += c[i] * state[i];
        }
        out[token * scan->n_heads + head] = y + scan->d[head] * x;
    }
}

void run_scan_mamba(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out)
{
#pragma omp parallel for schedule(static) if (n * scan->n_heads * scan->n_state > PARALLEL_ELEMENTS)
    for (size_t head = 0; head < scan->n_heads; head++)
        scan_channel(scan, rows, head, n, out);
}

static void scan_head(struct run_scan *scan, const struct run_scan_rows *rows, size_t head,
                      size_t n, float *out)
{
    const size_t n_state = scan->n_state, width = scan->width, at = group_at(scan, head);
    float *states = scan->state + head * n_state * width;

    for (size_t token = 0; token < n; token++) {
        const float *restrict x = rows->x + token * rows->x_stride + head * width;
        const float step = run_softplus(rows->dt[token * rows->dt_stride + head]);
        const float decay = expf(step * scan->a[head]), d = scan->d[head];
        const float *b = rows->b + token * rows->bc_stride + at;
        const float *c = rows->c + token * rows->bc_stride + at;
        float *restrict y = out + (token * scan->n_heads + head) * width;

        memset(y, 0, width * sizeof *y);
        for (size_t i = 0; i < n_state; i++) {
            const float input = step * b[i], weight = c[i];
            float *restrict state = states + i * width;

#pragma omp simd
            for (size_t j = 0; j < width; j++) {
                state[j] = state[j] * decay + input * x[j];
                y[j] += weight * state[j];
            }
        }
#pragma omp simd
        for (size_t j = 0; j < width; j++)
            y[j] += d * x[j];
    }
}

void run_scan_mamba2(struct run_scan *scan, const struct run_scan_rows *rows, size_t n, float *out)
{
#pragma omp parallel for schedule(static) if (n * scan->n_heads * scan->n_state * scan->width >    \
                                              PARALLEL_ELEMENTS)
    for (size_t head = 0; head < scan->n_heads; head++)
        scan_head(scan, rows, head, n, out);
}
