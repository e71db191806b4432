#include "contrib/runner/sampling/sampler.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 50, N_DRAWS = 40000 };

static const struct run_sampling plain = {
    .repeat_penalty = 1, .top_p = 1, .temperature = 1, .seed = 7};

static struct run_sampler *open_sampler(struct run_sampling sampling, uint32_t n_vocab)
{
    struct run_sampler *sampler;
    struct run_failure failure;

    cr_assert_eq(run_sampler_open(&sampling, n_vocab, 100, &sampler, &failure), 0);
    return sampler;
}

static int32_t pick(struct run_sampler *sampler, const float *logits, uint32_t n)
{
    float copy[N_VOCAB];
    struct run_failure failure;
    int32_t token = -1;

    memcpy(copy, logits, n * sizeof *copy);
    cr_assert_eq(run_sampler_pick(sampler, copy, &token, &failure), 0);
    return token;
}

static void fill(float *logits, uint64_t seed, double spread)
{
    struct run_xoshiro random;

    run_xoshiro_seed(&random, seed);
    for (int i = 0; i < N_VOCAB; i++)
        logits[i] = (float)((run_xoshiro_double(&random) - 0.5) * spread);
}

/* Compare with numbers from the authors' programs. */
Test(run_sampler, random_numbers_match_the_original)
{
    struct run_xoshiro random = {.state = {1, 2, 3, 4}};

    cr_expect_eq(run_xoshiro_next(&random), 41943041u);
    cr_expect_eq(run_xoshiro_next(&random), 58720359u);
    cr_expect_eq(run_xoshiro_next(&random), 3588806011781223u);
    run_xoshiro_seed(&random, 0);
    cr_expect_eq(random.state[0], 0xe220a8397b1dcdafu);
    for (int i = 0; i < 1000; i++) {
        const double value = run_xoshiro_double(&random);

        cr_expect(value >= 0 && value < 1);
    }
}

Test(run_sampler, zero_temperature_is_greedy)
{
    const float logits[5] = {-1, 3, 2, 3, -INFINITY};
    struct run_sampling sampling = plain;
    struct run_sampler *sampler;

    sampling.temperature = 0;
    sampler = open_sampler(sampling, 5);
    cr_expect_eq(pick(sampler, logits, 5), 1, "the lowest id of equal logits");
    run_sampler_close(sampler);
}

Test(run_sampler, nan_and_infinite_logits_are_refused)
{
    static const float wrong[][3] = {
        {1, NAN, 2}, {INFINITY, 0, 0}, {-INFINITY, -INFINITY, -INFINITY}};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (int temperature = 0; temperature < 2; temperature++) {
            struct run_sampling sampling = plain;
            struct run_sampler *sampler;
            struct run_failure failure = {0};
            float logits[3];
            int32_t token;

            sampling.temperature = (float)temperature;
            sampler = open_sampler(sampling, 3);
            memcpy(logits, wrong[i], sizeof logits);
            cr_expect_eq(run_sampler_pick(sampler, logits, &token, &failure), -EDOM);
            cr_expect_str_not_empty(failure.text);
            run_sampler_close(sampler);
        }
    }
}

/* ---- compared with a plain implementation in double ---- */

struct share {
    int32_t token;
    double logit, p;
};

static int by_logit(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    if (x->logit != y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static void normalize(struct share *shares, int n, double temperature)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += shares[i].p = exp((shares[i].logit - shares[0].logit) / temperature);
    for (int i = 0; i < n; i++)
        shares[i].p /= sum;
}

/* Compute the probability of each token. */
static void expect_shares(const struct run_sampling *sampling, const float *logits,
                          double p[N_VOCAB])
{
    struct share shares[N_VOCAB];
    int n = N_VOCAB, n_kept = 0;
    double reached = 0;

    for (int i = 0; i < N_VOCAB; i++)
        shares[i] = (struct share){.token = i, .logit = logits[i]};
    qsort(shares, N_VOCAB, sizeof *shares, by_logit);
    if (sampling->top_k > 0 && sampling->top_k < N_VOCAB)
        n = (int)sampling->top_k;
    normalize(shares, n, 1);
    while (n_kept < n && (n_kept == 0 || reached < sampling->top_p))
        reached += shares[n_kept++].p;
    n = n_kept;
    normalize(shares, n, 1);
    while (n > 1 && shares[n - 1].p < sampling->min_p * shares[0].p)
        n--;
    normalize(shares, n, sampling->temperature);
    for (int i = 0; i < N_VOCAB; i++)
        p[i] = 0;
    for (int i = 0; i < n; i++)
        p[shares[i].token] = shares[i].p;
}

/*
 * The seed is fixed, so the counts are the same in every run. They must be within 5 standard
 * deviations.
 */
Test(run_sampler, draws_match_the_probabilities)
{
    static const struct run_sampling samplings[] = {
        {.top_p = 1, .temperature = 1},
        {.top_p = 1, .temperature = 0.4F},
        {.top_p = 1, .temperature = 2},
        {.top_k = 5, .top_p = 1, .temperature = 1},
        {.top_k = 1, .top_p = 1, .temperature = 1},
        {.top_k = 60, .top_p = 0.7F, .temperature = 1},
        {.top_p = 0.5F, .temperature = 1.5F},
        {.top_p = 0, .temperature = 1},
        {.top_p = 1, .min_p = 0.2F, .temperature = 1},
        {.top_p = 1, .min_p = 1, .temperature = 1},
        {.top_k = 20, .top_p = 0.9F, .min_p = 0.05F, .temperature = 0.8F},
    };

    for (size_t i = 0; i < sizeof samplings / sizeof *samplings; i++) {
        struct run_sampling sampling = samplings[i];
        struct run_sampler *sampler;
        float logits[N_VOCAB];
        double p[N_VOCAB];
        int counts[N_VOCAB] = {0};

        sampling.repeat_penalty = 1;
        sampling.seed = 42 + i;
        fill(logits, i, 8);
        logits[3] = -INFINITY;
        expect_shares(&sampling, logits, p);
        sampler = open_sampler(sampling, N_VOCAB);
        for (int j = 0; j < N_DRAWS; j++)
            counts[pick(sampler, logits, N_VOCAB)]++;
        run_sampler_close(sampler);
        for (int j = 0; j < N_VOCAB; j++) {
            const double mean = N_DRAWS * p[j];
            const double deviation = sqrt(mean * (1 - p[j]));

            if (p[j] == 0)
                cr_expect_eq(counts[j], 0, "case %zu: token %d has probability 0 but was drawn", i,
                             j);
            else
                cr_expect_leq(fabs(counts[j] - mean), 5 * deviation + 1e-9,
                              "case %zu: token %d was drawn %d times, expected about %.0f", i, j,
                              counts[j], mean);
        }
    }
}

Test(run_sampler, a_seed_repeats_its_draws)
{
    int32_t first[100];
    int n_other = 0;
    float logits[N_VOCAB];

    fill(logits, 1, 4);
    for (int round = 0; round < 3; round++) {
        struct run_sampling sampling = plain;
        struct run_sampler *sampler;

        sampling.seed = round == 2 ? 8 : 7;
        sampler = open_sampler(sampling, N_VOCAB);
        for (int i = 0; i < 100; i++) {
            const int32_t token = pick(sampler, logits, N_VOCAB);

            if (round == 0)
                first[i] = token;
            else if (round == 1)
                cr_expect_eq(token, first[i]);
            else
                n_other += token != first[i];
        }
        run_sampler_close(sampler);
    }
    cr_expect_gt(n_other, 50, "another seed must give other draws");
}

Test(run_sampler, repeat_penalty)
{
    struct run_sampling sampling = plain;
    struct run_failure failure;
    struct run_sampler *sampler;
    float logits[5] = {4, 3, -2, 1, 2};
    int32_t token;

    sampling.temperature = 0;
    sampling.repeat_penalty = 2;
    sampling.repeat_last_n = 3;
    sampler = open_sampler(sampling, 5);
    run_sampler_accept(sampler, 4); /* falls out of the window */
    run_sampler_accept(sampler, 0);
    run_sampler_accept(sampler, 0);
    run_sampler_accept(sampler, 2);
    run_sampler_accept(sampler, -1);
    run_sampler_accept(sampler, 5);
    cr_assert_eq(run_sampler_pick(sampler, logits, &token, &failure), 0);
    cr_expect_eq(token, 1);
    cr_expect_float_eq(logits[0], 2, 0);
    cr_expect_float_eq(logits[2], -4, 0, "a negative logit is multiplied");
    cr_expect_float_eq(logits[4], 2, 0);
    run_sampler_close(sampler);
}
