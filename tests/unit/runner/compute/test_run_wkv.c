/* The recurrences of RWKV, compared with their definitions in double, without a state. */
#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_TOKENS = 9, N_HEAD = 3, WIDTH = 70, N_EMBD = N_HEAD * WIDTH };

/* Inputs of all tokens. */
struct rows {
    float r[N_TOKENS][N_EMBD], k[N_TOKENS][N_EMBD], v[N_TOKENS][N_EMBD], w[N_TOKENS][N_EMBD];
    float a[N_TOKENS][N_EMBD], b[N_TOKENS][N_EMBD], u[N_EMBD];
};

static void fill(float *x, size_t n, float least, float most, uint64_t *state)
{
    for (size_t i = 0; i < n; i++)
        x[i] = least + (most - least) * (float)(model_file_random(state) >> 40) / (float)(1 << 24);
}

static struct rows *make_rows(float key_scale)
{
    struct rows *rows = malloc(sizeof *rows);
    uint64_t state = 7;

    cr_assert_not_null(rows);
    fill(&rows->r[0][0], N_TOKENS * N_EMBD, -1, 1, &state);
    fill(&rows->k[0][0], N_TOKENS * N_EMBD, -key_scale, key_scale, &state);
    fill(&rows->v[0][0], N_TOKENS * N_EMBD, -1, 1, &state);
    fill(&rows->w[0][0], N_TOKENS * N_EMBD, 0.2f, 1, &state);
    fill(&rows->a[0][0], N_TOKENS * N_EMBD, -0.2f, 0.2f, &state);
    fill(&rows->b[0][0], N_TOKENS * N_EMBD, -0.2f, 0.2f, &state);
    fill(rows->u, N_EMBD, -1, 1, &state);
    return rows;
}

static void expect_near(const char *what, size_t t, size_t i, float got, double expected)
{
    cr_expect_lt(fabs((double)got - expected), 2e-5 * (1 + fabs(expected)),
                 "%s, token %zu, element %zu: %g, expected %g", what, t, i, (double)got, expected);
}

/* Batch sizes: all tokens at once, four, one. */
static const size_t batches[] = {N_TOKENS, 4, 1};

/* ---- RWKV 4 ---- */

static double wkv4(const struct rows *rows, const float *decay, size_t t, size_t i)
{
    double numerator = 0, denominator = 0;

    for (size_t s = 0; s <= t; s++) {
        const double exponent =
            s == t ? (double)rows->k[s][i] + (double)rows->u[i]
                   : (double)rows->k[s][i] + (double)(t - 1 - s) * (double)decay[i];

        numerator += exp(exponent) * (double)rows->v[s][i];
        denominator += exp(exponent);
    }
    return numerator / denominator;
}

static void run_4(const struct run_wkv4 *wkv, const struct rows *rows, const float *decay,
                  size_t batch, float out[N_TOKENS][N_EMBD])
{
    memset(wkv->sums, 0, 2 * wkv->width * sizeof *wkv->sums);
    for (size_t i = 0; i < wkv->width; i++)
        wkv->exponents[i] = RUN_WKV4_LEAST_EXPONENT;
    for (size_t t = 0; t < N_TOKENS; t += batch)
        run_wkv4(wkv, decay, rows->u, rows->k[t], rows->v[t],
                 N_TOKENS - t < batch ? N_TOKENS - t : batch, out[t]);
}

TestSuite(run_wkv, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

/* Keys beyond the range of exp() in float. */
Test(run_wkv, version_4)
{
    static float out[N_TOKENS][N_EMBD], other[N_TOKENS][N_EMBD], decay[N_EMBD];
    static float sums[2 * N_EMBD], exponents[N_EMBD];
    const struct run_wkv4 wkv = {.width = N_EMBD, .sums = sums, .exponents = exponents};
    struct rows *rows = make_rows(200);
    uint64_t random = 3;

    fill(decay, N_EMBD, -3, -0.01f, &random);
    run_4(&wkv, rows, decay, N_TOKENS, out);
    for (size_t t = 0; t < N_TOKENS; t++)
        for (size_t i = 0; i < N_EMBD; i++)
            expect_near("wkv4", t, i, out[t][i], wkv4(rows, decay, t, i));
    for (size_t i = 0; i < COUNT(batches); i++) {
        run_4(&wkv, rows, decay, batches[i], other);
        cr_expect_eq(memcmp(out, other, sizeof out), 0, "batches of %zu", batches[i]);
    }
    free(rows);
}

/* ---- versions with matrix states ---- */

enum kind { WKV5, WKV6, LINEAR, WKV7 };

static float state[N_HEAD * WIDTH * WIDTH];

static void run_all(enum kind kind, const struct rows *rows, size_t batch,
                    float out[N_TOKENS][N_EMBD])
{
    const struct run_wkv wkv = {
        .rule = kind == WKV7     ? RUN_WKV7
                : kind == LINEAR ? RUN_GATED_LINEAR
                                 : RUN_WKV6,
        .n_head = N_HEAD,
        .width = WIDTH,
        .state = state,
    };

    memset(state, 0, sizeof state);
    for (size_t t = 0; t < N_TOKENS; t += batch) {
        const size_t n = N_TOKENS - t < batch ? N_TOKENS - t : batch;
        const struct run_wkv_input input = {
            .r = rows->r[t],
            .k = rows->k[t],
            .v = rows->v[t],
            .w = rows->w[kind == WKV5 ? 0 : t],
            .w_stride = kind == WKV5 ? 0 : N_EMBD,
            .u = kind == WKV5 || kind == WKV6 ? rows->u : NULL,
            .a = kind == WKV7 ? rows->a[t] : NULL,
            .b = kind == WKV7 ? rows->b[t] : NULL,
        };

        run_wkv(&wkv, &input, n, out[t]);
    }
}

static void expect_batches_same(enum kind kind, const struct rows *rows,
                                float out[N_TOKENS][N_EMBD])
{
    static float other[N_TOKENS][N_EMBD];

    for (size_t i = 0; i < COUNT(batches); i++) {
        run_all(kind, rows, batches[i], other);
        cr_expect_eq(memcmp(out, other, sizeof other), 0, "batches of %zu", batches[i]);
    }
}

/* Weight of the value of token s in the output of token t: a sum over the elements of the key. */
static double weight(enum kind kind, const struct rows *rows, size_t t, size_t s, size_t head)
{
    double sum = 0;

    for (size_t i = head * WIDTH; i < (head + 1) * WIDTH; i++) {
        double product = (double)rows->r[t][i] * (double)rows->k[s][i];

        if (kind == LINEAR)
            product /= sqrt(WIDTH);
        else if (s == t)
            product *= (double)rows->u[i];
        for (size_t q = s + 1; q < t + (kind == LINEAR); q++)
            product *= (double)rows->w[kind == WKV5 ? 0 : q][i];
        sum += product;
    }
    return sum;
}

static void expect_sums(enum kind kind, const char *what)
{
    static float out[N_TOKENS][N_EMBD];
    struct rows *rows = make_rows(1);

    run_all(kind, rows, N_TOKENS, out);
    for (size_t t = 0; t < N_TOKENS; t++)
        for (size_t head = 0; head < N_HEAD; head++) {
            double weights[N_TOKENS];

            for (size_t s = 0; s <= t; s++)
                weights[s] = weight(kind, rows, t, s, head);
            for (size_t i = head * WIDTH; i < (head + 1) * WIDTH; i++) {
                double expected = 0;

                for (size_t s = 0; s <= t; s++)
                    expected += weights[s] * (double)rows->v[s][i];
                expect_near(what, t, i, out[t][i], expected);
            }
        }
    expect_batches_same(kind, rows, out);
    free(rows);
}

Test(run_wkv, version_5)
{
    expect_sums(WKV5, "wkv5");
}

Test(run_wkv, version_6)
{
    expect_sums(WKV6, "wkv6");
}

Test(run_wkv, gated_linear_attention)
{
    expect_sums(LINEAR, "linear");
}

/* Update one column of a head's state: S = (diag(w) + b a) S + k v. */
static void step_7(const struct rows *rows, size_t t, size_t head, double v, double s[WIDTH])
{
    const size_t at = head * WIDTH;
    double found = 0;

    for (size_t i = 0; i < WIDTH; i++)
        found += (double)rows->a[t][at + i] * s[i];
    for (size_t i = 0; i < WIDTH; i++)
        s[i] = s[i] * (double)rows->w[t][at + i] + (double)rows->b[t][at + i] * found +
               (double)rows->k[t][at + i] * v;
}

Test(run_wkv, version_7)
{
    static float out[N_TOKENS][N_EMBD];
    struct rows *rows = make_rows(1);

    run_all(WKV7, rows, N_TOKENS, out);
    for (size_t i = 0; i < N_EMBD; i++) {
        const size_t head = i / WIDTH;
        double column[WIDTH] = {0};

        for (size_t t = 0; t < N_TOKENS; t++) {
            double expected = 0;

            step_7(rows, t, head, (double)rows->v[t][i], column);
            for (size_t j = 0; j < WIDTH; j++)
                expected += (double)rows->r[t][head * WIDTH + j] * column[j];
            expect_near("wkv7", t, i, out[t][i], expected);
        }
    }
    expect_batches_same(WKV7, rows, out);
    free(rows);
}
