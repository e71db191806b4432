/* Attention of the runner, compared with a reference in double. */
#include "contrib/runner/compute/attend.h"
#include "contrib/runner/compute/thread_pool.h"
#include "dequant/kernels.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Queries, keys and values of n_all tokens. */
struct tokens {
    size_t n_all;
    float *q, *k, *v; /* [n_all][heads][dim] */
};

static struct tokens make_tokens(const struct run_attention *a, size_t n_all)
{
    uint64_t state = n_all + a->n_head;

    return (struct tokens){
        .n_all = n_all,
        .q = numbers_make(&state, 2, n_all * a->n_head * a->dim_k),
        .k = numbers_make(&state, 2, n_all * a->n_head_kv * a->dim_k),
        .v = numbers_make(&state, 1, n_all * a->n_head_kv * a->dim_v),
    };
}

static void free_tokens(struct tokens *tokens)
{
    free(tokens->q);
    free(tokens->k);
    free(tokens->v);
}

/*
 * Return the ALiBi slope as in the code of Press et al. For a power of two, slopes are a geometric
 * sequence. Other numbers of heads use the next lower power's sequence, then every other slope of
 * the next higher power.
 */
static double alibi_slope(double max_bias, uint32_t n_head, uint32_t head)
{
    uint32_t power = 1;

    while (power * 2 <= n_head)
        power *= 2;
    if (power == n_head)
        return pow(2, -max_bias * (head + 1) / n_head);
    if (head < power)
        return alibi_slope(max_bias, power, head);
    return alibi_slope(max_bias, 2 * power, 2 * (head - power));
}

static bool is_visible(const struct run_attention *a, size_t position, size_t other)
{
    if (other > position)
        return false;
    if (a->window_kind == RUN_WINDOW_SLIDING)
        return position - other < a->window;
    if (a->window_kind == RUN_WINDOW_CHUNKED)
        return position / a->window == other / a->window;
    return true;
}

static void reference_of_some(const struct run_attention *a, const struct tokens *tokens,
                              size_t position, uint32_t head, size_t divisor, double *out)
{
    const size_t dim_k = a->dim_k, dim_v = a->dim_v, n_kv = a->n_head_kv;
    const size_t head_kv = (size_t)head * n_kv / a->n_head;
    double sum = a->sinks ? exp((double)a->sinks[head]) : 0;

    memset(out, 0, dim_v * sizeof *out);
    for (size_t j = 0; j < tokens->n_all; j++) {
        double score = 0;

        if (!is_visible(a, position, j) || j % divisor != 0)
            continue;
        for (size_t i = 0; i < dim_k; i++)
            score += (double)tokens->q[(position * a->n_head + head) * dim_k + i] *
                     (double)tokens->k[(j * n_kv + head_kv) * dim_k + i];
        score *= (double)a->scale;
        if (a->softcap > 0)
            score = (double)a->softcap * tanh(score / (double)a->softcap);
        if (a->max_alibi > 0)
            score -= alibi_slope((double)a->max_alibi, a->n_head, head) * (double)(position - j);
        sum += exp(score);
        for (size_t i = 0; i < dim_v; i++)
            out[i] += exp(score) * (double)tokens->v[(j * n_kv + head_kv) * dim_v + i];
    }
    for (size_t i = 0; i < dim_v; i++)
        out[i] /= sum;
}

static void reference(const struct run_attention *a, const struct tokens *tokens, size_t position,
                      uint32_t head, double *out)
{
    reference_of_some(a, tokens, position, head, 1, out);
}

/* Feed the tokens in batches of this size, with caches of a layer with that window, or none. */
static float *attend_with(const struct run_attention *a, const struct tokens *tokens, size_t batch,
                          const struct run_cache *like)
{
    const size_t q_width = (size_t)a->n_head * a->dim_k, out_width = (size_t)a->n_head * a->dim_v;
    struct run_cache keys = *like, values = *like;
    float *out = numbers_alloc(tokens->n_all * out_width, sizeof *out);

    keys.dim = a->dim_k;
    keys.width = a->n_head_kv * keys.dim;
    values.dim = a->dim_v;
    values.width = a->n_head_kv * values.dim;
    values.is_transposed = false;
    for (size_t first = 0; first < tokens->n_all; first += batch) {
        const size_t left = tokens->n_all - first, n = left < batch ? left : batch;

        cr_assert_eq(run_cache_reserve(&keys, first + n), 0);
        cr_assert_eq(run_cache_reserve(&values, first + n), 0);
        run_cache_store(&keys, first, tokens->k + first * keys.width, n, keys.width);
        run_cache_store(&values, first, tokens->v + first * values.width, n, values.width);
        cr_assert_eq(run_attend(a, tokens->q + first * q_width, q_width, &keys, &values, n, first,
                                out + first * out_width),
                     0);
    }
    run_cache_free(&keys);
    run_cache_free(&values);
    return out;
}

static float *attend(const struct run_attention *a, const struct tokens *tokens, size_t batch,
                     uint32_t type)
{
    return attend_with(a, tokens, batch, &(struct run_cache){.type = type});
}

/* Check that all batch sizes give the same bits, and that the result is near the reference. */
static void check(const struct run_attention *a, size_t n_all, bool is_f16)
{
    static const size_t batches[] = {1, 2, 7, 16, 33};
    const size_t out_width = (size_t)a->n_head * a->dim_v;
    struct tokens tokens = make_tokens(a, n_all);
    float *out = attend(a, &tokens, n_all, is_f16 ? DEQUANT_F16 : DEQUANT_F32);
    double *expected = numbers_alloc(out_width, sizeof *expected);

    for (size_t i = 0; i < COUNT(batches); i++) {
        const struct run_cache like = {.type = is_f16 ? DEQUANT_F16 : DEQUANT_F32,
                                       .is_transposed = true};
        float *other = attend_with(a, &tokens, batches[i], &like);

        numbers_expect_same("in batches", other, out, n_all * out_width);
        free(other);
    }
    for (size_t i = 0; is_f16 && i < n_all * a->n_head_kv * a->dim_k; i++)
        tokens.k[i] = numbers_as_f16(tokens.k[i]);
    for (size_t i = 0; is_f16 && i < n_all * a->n_head_kv * a->dim_v; i++)
        tokens.v[i] = numbers_as_f16(tokens.v[i]);
    for (size_t position = 0; position < n_all; position++) {
        for (uint32_t head = 0; head < a->n_head; head++)
            reference(a, &tokens, position, head, expected + head * a->dim_v);
        numbers_expect_near("attention", out + position * out_width, expected, out_width, 2e-6);
    }
    free(out);
    free(expected);
    free_tokens(&tokens);
}

static const struct run_attention usual = {
    .n_head = 4, .n_head_kv = 4, .dim_k = 16, .dim_v = 16, .scale = 0.25f};

TestSuite(run_attend, .init = thread_pool_begin_test, .fini = run_thread_pool_end);

Test(run_attend, heads_share_keys_and_values)
{
    static const uint32_t n_heads[][2] = {{1, 1}, {4, 4}, {6, 2}, {5, 1}, {8, 4}};

    for (size_t i = 0; i < COUNT(n_heads); i++) {
        struct run_attention a = usual;

        a.n_head = n_heads[i][0];
        a.n_head_kv = n_heads[i][1];
        check(&a, 40, false);
        check(&a, 40, true);
    }
}

Test(run_attend, keys_and_values_may_differ_in_width)
{
    static const uint32_t widths[][2] = {{24, 16}, {8, 40}, {1, 3}, {33, 1}, {192, 128}};

    for (size_t i = 0; i < COUNT(widths); i++) {
        struct run_attention a = usual;

        a.dim_k = widths[i][0];
        a.dim_v = widths[i][1];
        a.scale = 1 / sqrtf((float)a.dim_k);
        check(&a, 37, false);
        check(&a, 37, true);
    }
}

Test(run_attend, soft_cap)
{
    struct run_attention a = usual;

    a.scale = 1;
    a.softcap = 5;
    check(&a, 30, false);
}

Test(run_attend, alibi_for_any_number_of_heads)
{
    for (uint32_t n_head = 1; n_head <= 20; n_head++) {
        struct run_attention a = usual;

        a.n_head = a.n_head_kv = n_head;
        a.max_alibi = n_head % 2 ? 8 : 4;
        check(&a, 33, false);
    }
}

Test(run_attend, windows)
{
    static const uint32_t sizes[] = {1, 2, 7, 16, 17, 39, 40, 41, 1000, INT32_MAX};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct run_attention a = usual;

        a.window = sizes[i];
        a.window_kind = RUN_WINDOW_SLIDING;
        check(&a, 40, i % 2);
        a.window_kind = RUN_WINDOW_CHUNKED;
        check(&a, 40, i % 2);
    }
}

Test(run_attend, sinks)
{
    const float sinks[] = {-2, 0, 3, 80};
    struct run_attention a = usual;

    a.sinks = sinks;
    check(&a, 33, false);
    a.window = 5;
    a.window_kind = RUN_WINDOW_SLIDING;
    check(&a, 33, true);
}

Test(run_attend, everything_at_once)
{
    const float sinks[] = {0, 0.5f, 1, -1, 2, 1.5f};
    const struct run_attention a = {
        .n_head = 6,
        .n_head_kv = 3,
        .dim_k = 20,
        .dim_v = 12,
        .scale = 0.3f,
        .softcap = 4,
        .max_alibi = 8,
        .window_kind = RUN_WINDOW_SLIDING,
        .window = 19,
        .sinks = sinks,
    };

    check(&a, 70, false);
    check(&a, 70, true);
}

Test(run_attend, stride_of_queries)
{
    struct tokens tokens = make_tokens(&usual, 9);
    const size_t width = 64;
    struct run_cache cache = {.width = width, .dim = 16};
    float *together = numbers_alloc(9 * width, sizeof *together);
    float *apart = numbers_alloc(9 * width, sizeof *apart);
    float *queries = numbers_alloc(9 * (width + 5), sizeof *queries);

    cr_assert_eq(run_cache_reserve(&cache, 9), 0);
    run_cache_store(&cache, 0, tokens.k, 9, width);
    for (size_t i = 0; i < 9; i++)
        memcpy(queries + i * (width + 5), tokens.q + i * width, width * sizeof *queries);
    cr_assert_eq(run_attend(&usual, tokens.q, width, &cache, &cache, 9, 0, together), 0);
    cr_assert_eq(run_attend(&usual, queries, width + 5, &cache, &cache, 9, 0, apart), 0);
    numbers_expect_same("attention", apart, together, 9 * width);
    run_cache_free(&cache);
    free(together);
    free(apart);
    free(queries);
    free_tokens(&tokens);
}

/* ---- tiles ---- */

static void choose_best_kernels(void)
{
    cr_assert_eq(dequant_choose_kernels(NULL), 0);
}

/* With the CPU's best kernels, for speed; build/check-kernels compares them with the plain ones. */
TestSuite(run_attend_tiles, .init = choose_best_kernels);

Test(run_attend_tiles, more_positions_than_a_tile)
{
    static const uint32_t n_heads[][2] = {{4, 4}, {8, 2}, {3, 1}, {40, 1}, {17, 1}};
    static const size_t lengths[] = {64, 65, 130};

    for (size_t i = 0; i < COUNT(n_heads); i++) {
        for (size_t j = 0; j < COUNT(lengths); j++) {
            struct run_attention a = usual;

            a.n_head = n_heads[i][0];
            a.n_head_kv = n_heads[i][1];
            check(&a, lengths[j], (i + j) % 2);
        }
    }
}

Test(run_attend_tiles, windows_that_begin_at_the_edges_of_tiles)
{
    static const uint32_t sizes[] = {1, 63, 64, 65, 100, 128, 129};
    const float sinks[] = {-2, 0, 3, 1};

    for (size_t i = 0; i < COUNT(sizes); i++) {
        struct run_attention a = usual;

        a.window = sizes[i];
        a.window_kind = RUN_WINDOW_SLIDING;
        check(&a, 200, i % 2);
        a.max_alibi = 8;
        a.sinks = sinks;
        a.softcap = 3;
        check(&a, 200, i % 2);
        a.window_kind = RUN_WINDOW_CHUNKED;
        check(&a, 200, i % 2);
    }
}

Test(run_attend_tiles, caches_of_a_window)
{
    static const uint32_t sizes[] = {1, 64, 100, 192, 300};
    static const size_t n_all = 1100, batches[] = {1, 3, 64, 200};

    for (size_t i = 0; i < COUNT(sizes) * COUNT(batches); i++) {
        struct run_cache like = {.type = i % 2 ? DEQUANT_F16 : DEQUANT_F32, .is_transposed = true};
        const size_t batch = batches[i % COUNT(batches)];
        struct run_attention a = usual;
        struct tokens tokens;
        float *out, *expected;

        a.n_head_kv = 2;
        a.window = sizes[i / COUNT(batches)];
        a.window_kind = i % 3 ? RUN_WINDOW_SLIDING : RUN_WINDOW_CHUNKED;
        tokens = make_tokens(&a, n_all);
        expected = attend_with(&a, &tokens, batch, &like);
        like.window = a.window;
        like.n_batch = (uint32_t)batch;
        out = attend_with(&a, &tokens, batch, &like);
        numbers_expect_same("a window", out, expected, n_all * a.n_head * a.dim_v);
        free(expected);
        free(out);
        free_tokens(&tokens);
    }
}

static float *attend_at_once(const struct run_attention *a, const struct tokens *tokens)
{
    return attend(a, tokens, tokens->n_all, DEQUANT_F32);
}

/* Every token selects those positions, up to its own, that divide by `divisor` of its group. */
static struct run_selection make_selection(size_t n_all, uint32_t n_groups, const size_t *divisors)
{
    uint32_t *lists = numbers_alloc(n_all * n_groups * n_all, sizeof *lists);
    uint32_t *counts = numbers_alloc(n_all * n_groups, sizeof *counts);

    for (size_t list = 0; list < n_all * n_groups; list++) {
        uint32_t *positions = lists + list * n_all, n = 0;

        for (uint32_t j = 0; j <= list / n_groups; j++)
            if (j % divisors[list % n_groups] == 0)
                positions[n++] = j;
        counts[list] = n;
    }
    return (struct run_selection){n_groups, n_all, lists, counts, 0, 0};
}

Test(run_attend, selected_positions)
{
    static const size_t divisors[] = {1, 3}, n_all = 150;
    static const uint32_t n_heads[][2] = {{8, 1}, {8, 2}, {8, 4}, {34, 1}};

    for (size_t i = 0; i < COUNT(n_heads); i++) {
        struct run_attention a = usual;
        struct run_selection selection = make_selection(n_all, 2, divisors);
        struct tokens tokens;
        float *out, *all;

        a.n_head = n_heads[i][0];
        a.n_head_kv = n_heads[i][1];
        tokens = make_tokens(&a, n_all);
        all = attend_at_once(&a, &tokens);
        a.selection = &selection;
        out = attend_at_once(&a, &tokens);
        for (size_t token = 0; token < n_all; token++) {
            const size_t half = (size_t)a.n_head / 2 * a.dim_v;
            double expected[16];

            /* All positions are the same as no selection. */
            numbers_expect_same("all", out + token * 2 * half, all + token * 2 * half, half);
            for (uint32_t head = a.n_head / 2; head < a.n_head; head++) {
                reference_of_some(&a, &tokens, token, head, divisors[1], expected);
                numbers_expect_near("selected", out + (token * a.n_head + head) * a.dim_v, expected,
                                    a.dim_v, 2e-6);
            }
        }
        free(out);
        free(all);
        free_tokens(&tokens);
        run_selection_free(&selection);
    }
}

Test(run_attend, a_token_that_sees_nothing_gets_zeros)
{
    static const size_t divisors[] = {1};
    struct run_attention a = usual;
    struct run_selection selection = make_selection(3, 1, divisors);
    struct tokens tokens = make_tokens(&a, 3);
    float *out;

    selection.counts[1] = 0;
    a.selection = &selection;
    out = attend_at_once(&a, &tokens);
    for (size_t i = 0; i < 64; i++)
        cr_expect_eq(out[64 + i], 0);
    free(out);
    free_tokens(&tokens);
    run_selection_free(&selection);
}

Test(run_attend, later_tokens_do_not_matter)
{
    const size_t n_all = 140, width = 64;
    struct tokens tokens = make_tokens(&usual, n_all);
    float *before = attend_at_once(&usual, &tokens), *after;

    for (size_t i = 70 * width; i < n_all * width; i++) {
        tokens.k[i] = i % 2 ? NAN : INFINITY;
        tokens.v[i] = NAN;
    }
    after = attend_at_once(&usual, &tokens);
    numbers_expect_same("earlier tokens", after, before, 70 * width);
    free(before);
    free(after);
    free_tokens(&tokens);
}

Test(run_attend, the_highest_of_large_scores_wins)
{
    const size_t n_all = 100, width = 64;
    struct run_attention a = usual;
    struct tokens tokens = make_tokens(&a, n_all);
    float *out;

    a.scale = 1e4f;
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j < n_all; j++) {
            tokens.q[j * width + i] = 1;
            tokens.k[j * width + i] = j <= 50 ? (float)j : 0;
        }
    out = attend_at_once(&a, &tokens);
    for (size_t j = 0; j < n_all; j++)
        numbers_expect_same("value", out + j * width, tokens.v + (j < 50 ? j : 50) * width, width);
    free(out);
    free_tokens(&tokens);
}

Test(run_attend, q8_0_cache_is_near_the_floats)
{
    struct run_attention a = usual;
    struct tokens tokens;
    float *plain, *out;
    double difference = 0, whole = 0;

    a.dim_k = 64;
    a.dim_v = 32;
    tokens = make_tokens(&a, 100);
    plain = attend(&a, &tokens, 100, DEQUANT_F32);
    out = attend(&a, &tokens, 100, DEQUANT_Q8_0);
    for (size_t i = 0; i < 100 * 4 * 32; i++) {
        difference += pow((double)out[i] - (double)plain[i], 2);
        whole += pow((double)plain[i], 2);
    }
    cr_expect_lt(difference, 1e-3 * whole);
    cr_expect_gt(difference, 0);
    free(plain);
    free(out);
    free_tokens(&tokens);
}
