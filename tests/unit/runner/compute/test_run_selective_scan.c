/* The recurrences of Mamba and Mamba 2, compared with their formula in double. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/dequant/random_floats.h"
#include "tests/unit/runner/thread_pool_checks.h"

enum { HEADS = 6, GROUPS = 2, WIDTH = 11, STATE = 13, TOKENS = 19, ROW = 200, DT_ROW = 8 };

struct sample {
    bool is_mamba2;
    float a[HEADS * STATE], d[HEADS], state[HEADS * STATE * WIDTH];
    float x[TOKENS * ROW], dt[TOKENS * DT_ROW], b[TOKENS * ROW], c[TOKENS * ROW];
    struct run_scan scan;
};

static void make(struct sample *sample, bool is_mamba2)
{
    uint32_t seed = 3;

    *sample = (struct sample){.is_mamba2 = is_mamba2};
    random_floats(&seed, -4, -0.1f, sample->a, HEADS * STATE);
    random_floats(&seed, -1, 1, sample->d, HEADS);
    random_floats(&seed, -1, 1, sample->x, TOKENS * ROW);
    random_floats(&seed, -4, 3, sample->dt, TOKENS * DT_ROW);
    sample->dt[5] = 30; /* softplus(x) is x here */
    random_floats(&seed, -1, 1, sample->b, TOKENS * ROW);
    random_floats(&seed, -1, 1, sample->c, TOKENS * ROW);
    sample->scan = (struct run_scan){
        .n_heads = HEADS,
        .width = is_mamba2 ? WIDTH : 1,
        .is_mamba2 = is_mamba2,
        .n_state = STATE,
        .n_groups = is_mamba2 ? GROUPS : 1,
        .a = sample->a,
        .d = sample->d,
        .state = sample->state,
    };
}

static void feed(struct sample *sample, size_t batch, float *out)
{
    const size_t width = sample->scan.n_heads * sample->scan.width;

    for (size_t at = 0; at < TOKENS; at += batch) {
        const size_t n = TOKENS - at < batch ? TOKENS - at : batch;
        const struct run_scan_rows rows = {
            .x = sample->x + at * ROW,
            .x_stride = ROW,
            .dt = sample->dt + at * DT_ROW,
            .dt_stride = DT_ROW,
            .b = sample->b + at * ROW,
            .c = sample->c + at * ROW,
            .bc_stride = ROW,
        };

        run_scan(&sample->scan, &rows, n, out + at * width);
    }
}

/* Compute each element alone, with its own state. */
static void expect(const struct sample *sample, double *out)
{
    const size_t width = sample->scan.width;

    for (size_t head = 0; head < HEADS; head++)
        for (size_t j = 0; j < width; j++) {
            const size_t group = head * sample->scan.n_groups / HEADS;
            double state[STATE] = {0};

            for (size_t t = 0; t < TOKENS; t++) {
                const double x = (double)sample->x[t * ROW + head * width + j];
                const double step = log1p(exp((double)sample->dt[t * DT_ROW + head]));
                double y = (double)sample->d[head] * x;

                for (size_t i = 0; i < STATE; i++) {
                    const double a = (double)sample->a[sample->is_mamba2 ? head : head * STATE + i];

                    state[i] = exp(step * a) * state[i] +
                               step * (double)sample->b[t * ROW + group * STATE + i] * x;
                    y += (double)sample->c[t * ROW + group * STATE + i] * state[i];
                }
                out[(t * HEADS + head) * width + j] = y;
            }
        }
}

static void check(bool is_mamba2)
{
    static struct sample sample;
    static float whole[TOKENS * HEADS * WIDTH], parts[TOKENS * HEADS * WIDTH];
    static double expected[TOKENS * HEADS * WIDTH];
    const size_t n = TOKENS * HEADS * (is_mamba2 ? WIDTH : 1);

    make(&sample, is_mamba2);
    expect(&sample, expected);
    feed(&sample, TOKENS, whole);
    cr_assert_lt(error_of(whole, expected, n), 1e-12);
    for (size_t batch = 1; batch < 8; batch++) {
        make(&sample, is_mamba2);
        feed(&sample, batch, parts);
        cr_assert_eq(memcmp(whole, parts, n * sizeof *whole), 0, "batches of %zu", batch);
    }
}

TestSuite(run_selective_scan, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_selective_scan, mamba)
{
    check(false);
}

Test(run_selective_scan, mamba2)
{
    check(true);
}
