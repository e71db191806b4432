#include "contrib/runner/sampling/sampler.h"

#include "contrib/runner/compute/activation.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- random numbers ---- */

static uint64_t rotate_left(uint64_t value, int n_bits)
{
    return (value << n_bits) | (value >> (64 - n_bits));
}

void run_xoshiro_seed(struct run_xoshiro *xoshiro, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        xoshiro->state[i] = z ^ (z >> 31);
    }
}

uint64_t run_xoshiro_next(struct run_xoshiro *xoshiro)
{
    uint64_t *s = xoshiro->state;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double run_xoshiro_double(struct run_xoshiro *xoshiro)
{
    return (double)(run_xoshiro_next(xoshiro) >> 11) * 0x1p-53;
}

/* ---- sampling ---- */

struct candidate {
    float logit;
    int32_t token;
};

struct run_sampler {
    struct run_sampling sampling;
    struct run_xoshiro random;
    uint32_t n_vocab;
    struct candidate *candidates; /* n_vocab of them */

    int32_t *window; /* the last tokens, a ring buffer */
    size_t window_capacity, n_window, window_next;
    bool *is_penalized; /* for each token: already in this round */
};

int run_sampler_open(const struct run_sampling *sampling, uint32_t n_vocab, uint32_t n_context,
                     struct run_sampler **out, struct run_failure *failure)
{
    struct run_sampler *sampler = calloc(1, sizeof *sampler);
    int32_t n_last = sampling->repeat_last_n;

    *out = NULL;
    if (!sampler)
        return run_fail_memory(failure);
    sampler->sampling = *sampling;
    sampler->n_vocab = n_vocab;
    run_xoshiro_seed(&sampler->random, sampling->seed);
    if (sampling->repeat_penalty != 1)
        sampler->window_capacity =
            n_last < 0 || (uint32_t)n_last > n_context ? n_context : (uint32_t)n_last;
    sampler->candidates = calloc((size_t)n_vocab + 1, sizeof *sampler->candidates);
    sampler->window = calloc(sampler->window_capacity + 1, sizeof *sampler->window);
    sampler->is_penalized = calloc((size_t)n_vocab + 1, sizeof *sampler->is_penalized);
    if (!sampler->candidates || !sampler->window || !sampler->is_penalized) {
        run_sampler_close(sampler);
        return run_fail_memory(failure);
    }
    *out = sampler;
    return 0;
}

void run_sampler_close(struct run_sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->candidates);
    free(sampler->window);
    free(sampler->is_penalized);
    free(sampler);
}

void run_sampler_accept(struct run_sampler *sampler, int32_t token)
{
    if (sampler->window_capacity == 0 || token < 0 || (uint32_t)token >= sampler->n_vocab)
        return;
    sampler->window[sampler->window_next] = token;
    sampler->window_next = (sampler->window_next + 1) % sampler->window_capacity;
    if (sampler->n_window < sampler->window_capacity)
        sampler->n_window++;
}

static int check(const struct run_sampler *sampler, const float *logits,
                 struct run_failure *failure)
{
    bool is_any = false;

    for (uint32_t i = 0; i < sampler->n_vocab; i++) {
        if (isnan(logits[i]) || logits[i] == INFINITY)
            return run_fail(failure, -EDOM,
                            "the model computed %s for token %u; its weights may be damaged; "
                            "check them with ggufs --check --data MODEL",
                            isnan(logits[i]) ? "NaN" : "an infinite number", i);
        is_any |= logits[i] != -INFINITY;
    }
    return is_any ? 0 : run_fail(failure, -EDOM, "no token is left to choose from");
}

/*
 * Penalize every token in the window once, however often it occurs, as in Keskar et al., "CTRL: A
 * Conditional Transformer Language Model for Controllable Generation", 2019. Negative logits are
 * multiplied instead, since division would raise them.
 */
static void penalize(struct run_sampler *sampler, float *logits)
{
    const float penalty = sampler->sampling.repeat_penalty;

    memset(sampler->is_penalized, 0, sampler->n_vocab * sizeof *sampler->is_penalized);
    for (size_t i = 0; i < sampler->n_window; i++) {
        const int32_t token = sampler->window[i];

        if (sampler->is_penalized[token])
            continue;
        sampler->is_penalized[token] = true;
        logits[token] = logits[token] > 0 ? logits[token] / penalty : logits[token] * penalty;
    }
}

/* Return true if `a` is chosen before `b`: the likelier one, then the lower id. */
static bool is_before(const struct candidate *a, const struct candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->token < b->token);
}

static void swap(struct candidate *a, struct candidate *b)
{
    const struct candidate kept = *a;

    *a = *b;
    *b = kept;
}

static void sift_down(struct candidate *heap, size_t n, size_t parent)
{
    for (;;) {
        size_t first = parent;

        for (size_t child = 2 * parent + 1; child <= 2 * parent + 2 && child < n; child++)
            if (is_before(&heap[child], &heap[first]))
                first = child;
        if (first == parent)
            return;
        swap(&heap[first], &heap[parent]);
        parent = first;
    }
}

/* Make a max-heap of all logits, in O(n). */
static void make_heap(struct candidate *heap, const float *logits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        heap[i] = (struct candidate){.logit = logits[i], .token = (int32_t)i};
    for (size_t i = n / 2; i-- > 0;)
        sift_down(heap, n, i);
}

/* Return exp(logit - highest). Over `n` candidates, these sum to at least 1. */
static double weight_of(const struct candidate *candidate, float highest, float temperature)
{
    return exp(((double)candidate->logit - (double)highest) / (double)temperature);
}

/*
 * Take the likeliest candidates off the heap until top-k or top-p is satisfied. They end up at the
 * end of the array, the likeliest one last. Returns their number.
 */
static size_t take_top(struct candidate *heap, size_t n, const struct run_sampling *sampling)
{
    const float highest = heap[0].logit;
    const size_t limit = sampling->top_k > 0 && sampling->top_k < n ? sampling->top_k : n;
    double sum = 0, reached = 0;
    size_t n_taken = 0;

    if (limit == n) {
        for (size_t i = 0; i < n; i++)
            sum += weight_of(&heap[i], highest, 1);
    }
    while (n_taken < limit &&
           (n_taken == 0 || limit < n || reached < (double)sampling->top_p * sum)) {
        const size_t n_left = n - n_taken;

        reached += weight_of(&heap[0], highest, 1);
        swap(&heap[0], &heap[n_left - 1]);
        sift_down(heap, n_left - 1, 0);
        n_taken++;
    }
    if (limit == n || sampling->top_p >= 1)
        return n_taken;
    /* Now that the weights of top-k's candidates are known, apply top-p to them. */
    sum = (double)sampling->top_p * reached;
    reached = 0;
    for (size_t i = 0; i < n_taken; i++) {
        reached += weight_of(&heap[n - 1 - i], highest, 1);
        if (reached >= sum)
            return i + 1;
    }
    return n_taken;
}

static size_t keep_min_p(struct candidate *candidates, size_t n, float highest, float min_p)
{
    const double lowest = (double)highest + log((double)min_p);
    size_t n_kept = 0;

    for (size_t i = 0; i < n; i++)
        if ((double)candidates[i].logit >= lowest)
            candidates[n_kept++] = candidates[i];
    return n_kept;
}

static int32_t draw(struct run_sampler *sampler, const struct candidate *candidates, size_t n,
                    float highest)
{
    const float temperature = sampler->sampling.temperature;
    const struct candidate *last = candidates; /* the likeliest, which has weight 1 */
    double sum = 0, point;

    for (size_t i = 0; i < n; i++)
        sum += weight_of(&candidates[i], highest, temperature);
    point = run_xoshiro_double(&sampler->random) * sum;
    for (size_t i = 0; i < n; i++) {
        const double weight = weight_of(&candidates[i], highest, temperature);

        if (weight <= 0)
            continue;
        last = &candidates[i];
        point -= weight;
        if (point < 0)
            break;
    }
    return last->token;
}

int run_sampler_pick(struct run_sampler *sampler, float *logits, int32_t *token,
                     struct run_failure *failure)
{
    const struct run_sampling *sampling = &sampler->sampling;
    struct candidate *candidates = sampler->candidates;
    size_t n = sampler->n_vocab;
    float highest;
    int code;

    if (n == 0)
        return run_fail(failure, -EDOM, "no token is left to choose from");
    code = check(sampler, logits, failure);
    if (code < 0)
        return code;
    penalize(sampler, logits);
    *token = (int32_t)run_find_highest(logits, sampler->n_vocab);
    if (!(sampling->temperature > 0))
        return 0;
    highest = logits[*token];
    if (sampling->top_k > 0 || sampling->top_p < 1) {
        size_t n_taken;

        make_heap(candidates, logits, n);
        n_taken = take_top(candidates, n, sampling);
        candidates += n - n_taken;
        n = n_taken;
    } else {
        for (size_t i = 0; i < n; i++)
            candidates[i] = (struct candidate){.logit = logits[i], .token = (int32_t)i};
    }
    if (sampling->min_p > 0)
        n = keep_min_p(candidates, n, highest, sampling->min_p);
    *token = draw(sampler, candidates, n, highest);
    return 0;
}
