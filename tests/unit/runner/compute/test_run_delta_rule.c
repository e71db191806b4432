/*
 * The gated delta rule, compared with its formula in double: one decay per head or per key element,
 * keys shared by heads in both orders, values wider and narrower than a block.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/compute/thread_pool.h"
#include "tests/unit/dequant/random_floats.h"
#include "tests/unit/runner/thread_pool_checks.h"

enum { HEADS = 6, HEADS_K = 3, WIDTH_K = 9, MAX_V = 70, TOKENS = 17, ROW = 600 };

struct sample {
    float state[HEADS * WIDTH_K * MAX_V];
    float x[TOKENS * ROW]; /* per token q, k and v, one after the other */
    float decay[TOKENS * HEADS * WIDTH_K], beta[TOKENS * HEADS];
    struct run_delta_rule rule;
};

static void make(struct sample *sample, size_t width_v, size_t n_decays, bool keys_take_turns)
{
    uint32_t seed = 11;

    memset(sample->state, 0, sizeof sample->state);
    random_floats(&seed, -1, 1, sample->x, TOKENS * ROW);
    run_l2_norm(sample->x, TOKENS, 2 * HEADS_K, WIDTH_K, ROW, 1e-6f);
    random_floats(&seed, 0.2f, 1, sample->decay, TOKENS * HEADS * WIDTH_K);
    random_floats(&seed, 0, 1, sample->beta, TOKENS * HEADS);
    sample->rule = (struct run_delta_rule){
        .n_heads = HEADS,
        .n_heads_k = HEADS_K,
        .keys_take_turns = keys_take_turns,
        .width_k = WIDTH_K,
        .width_v = width_v,
        .n_decays = n_decays,
        .state = sample->state,
    };
}

static void feed(struct sample *sample, size_t batch, float *out)
{
    const size_t width = HEADS * sample->rule.width_v;

    for (size_t at = 0; at < TOKENS; at += batch) {
        const size_t n = TOKENS - at < batch ? TOKENS - at : batch;
        const struct run_delta_rows rows = {
            .q = sample->x + at * ROW,
            .k = sample->x + at * ROW + HEADS_K * WIDTH_K,
            .v = sample->x + at * ROW + 2 * HEADS_K * WIDTH_K,
            .stride = ROW,
            .decay = sample->decay + at * HEADS * sample->rule.n_decays,
            .beta = sample->beta + at * HEADS,
        };

        run_delta_rule(&sample->rule, &rows, n, out + at * width);
    }
}

static void expect_head(const struct sample *sample, size_t head, double *out)
{
    static double state[WIDTH_K][MAX_V];
    const struct run_delta_rule *rule = &sample->rule;
    const size_t head_k = rule->keys_take_turns ? head % HEADS_K : head * HEADS_K / HEADS;

    memset(state, 0, sizeof state);
    for (size_t t = 0; t < TOKENS; t++) {
        const float *q = sample->x + t * ROW + head_k * WIDTH_K, *k = q + HEADS_K * WIDTH_K;
        const float *v = sample->x + t * ROW + 2 * HEADS_K * WIDTH_K + head * rule->width_v;
        const float *decay = sample->decay + (t * HEADS + head) * rule->n_decays;

        for (size_t j = 0; j < rule->width_v; j++) {
            double known = 0, change, y = 0;

            for (size_t i = 0; i < WIDTH_K; i++) {
                state[i][j] *= (double)decay[rule->n_decays > 1 ? i : 0];
                known += (double)k[i] * state[i][j];
            }
            change = (double)sample->beta[t * HEADS + head] * ((double)v[j] - known);
            for (size_t i = 0; i < WIDTH_K; i++) {
                state[i][j] += (double)k[i] * change;
                y += (double)q[i] * state[i][j];
            }
            out[(t * HEADS + head) * rule->width_v + j] = y / sqrt(WIDTH_K);
        }
    }
}

static void check(size_t width_v, size_t n_decays, bool keys_take_turns)
{
    static struct sample sample;
    static float whole[TOKENS * HEADS * MAX_V], parts[TOKENS * HEADS * MAX_V];
    static double expected[TOKENS * HEADS * MAX_V];
    const size_t n = TOKENS * HEADS * width_v;

    make(&sample, width_v, n_decays, keys_take_turns);
    for (size_t head = 0; head < HEADS; head++)
        expect_head(&sample, head, expected);
    feed(&sample, TOKENS, whole);
    cr_assert_lt(error_of(whole, expected, n), 1e-12, "%zu wide", width_v);
    for (size_t batch = 1; batch < 8; batch++) {
        make(&sample, width_v, n_decays, keys_take_turns);
        feed(&sample, batch, parts);
        cr_assert_eq(memcmp(whole, parts, n * sizeof *whole), 0, "batches of %zu", batch);
    }
}

TestSuite(run_delta_rule, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_delta_rule, matches_the_formula)
{
    static const size_t widths[] = {1, 9, 64, MAX_V};

    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int keys_take_turns = 0; keys_take_turns < 2; keys_take_turns++) {
            check(widths[i], 1, keys_take_turns);
            check(widths[i], WIDTH_K, keys_take_turns);
        }
}

Test(run_delta_rule, l2_norm_gives_length_one)
{
    float x[2 * 10] = {3, 4, 0, 0, 0, 0, 9, 9, 9, 9, 1, 1, 1, -2, 0, 0, 9, 9, 9, 9};

    run_l2_norm(x, 2, 2, 3, 10, 0);
    cr_assert_float_eq(x[0], 0.6f, 1e-7);
    cr_assert_float_eq(x[1], 0.8f, 1e-7);
    cr_assert_float_eq(x[12], 0.57735027f, 1e-7);
    cr_assert_eq(x[13], -1);
    cr_assert_eq(x[6], 9);
    cr_assert_eq(x[16], 9);
}

Test(run_delta_rule, l2_norm_of_zeros_is_zeros)
{
    float x[3] = {0};

    run_l2_norm(x, 1, 1, 3, 3, 1e-6f);
    cr_assert_eq(x[0], 0);
}
