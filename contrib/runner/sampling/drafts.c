#include "contrib/runner/sampling/drafts.h"

#include "gguf/support/arrays.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { HASH_BITS = 15 };

/* Limits of a search: places, and tokens compared at each. */
enum { MOST_PLACES = 32, MOST_COMMON = 32 };

/* A hash of the n-gram that ends at `last` (Fibonacci hashing: Knuth, TAOCP volume 3, 6.4). */
static uint32_t hash_of(const int32_t *last)
{
    uint64_t hash = 0;

    for (int i = 0; i < RUN_NGRAM; i++)
        hash = (hash + (uint32_t)last[-i]) * 0x9E3779B97F4A7C15;
    return (uint32_t)(hash >> (64 - HASH_BITS));
}

void run_lookup_free(struct run_lookup *lookup)
{
    run_ids_free(&lookup->text);
    free(lookup->heads);
    free(lookup->previous);
    *lookup = (struct run_lookup){0};
}

int run_lookup_add(struct run_lookup *lookup, int32_t token)
{
    struct run_ids *text = &lookup->text;
    uint32_t *head;

    if (!lookup->heads)
        lookup->heads = calloc((size_t)1 << HASH_BITS, sizeof *lookup->heads);
    if (!lookup->heads ||
        gguf_reserve(&lookup->previous, &lookup->previous_capacity, text->n + 1,
                     sizeof *lookup->previous) < 0 ||
        run_ids_add(text, token) < 0)
        return -ENOMEM;
    lookup->previous[text->n - 1] = 0;
    if (text->n < RUN_NGRAM)
        return 0;
    head = &lookup->heads[hash_of(&text->list[text->n - 1])];
    lookup->previous[text->n - 1] = *head;
    *head = (uint32_t)text->n;
    return 0;
}

void run_lookup_drop(struct run_lookup *lookup)
{
    struct run_ids *text = &lookup->text;

    if (text->n >= RUN_NGRAM)
        lookup->heads[hash_of(&text->list[text->n - 1])] = lookup->previous[text->n - 1];
    text->n -= text->n > 0;
}

/* Return the number of tokens that are equal before `end` and at the end of the text. */
static size_t common_length(const struct run_ids *text, size_t end)
{
    size_t n = 0;

    while (n < MOST_COMMON && n < end && text->list[end - 1 - n] == text->list[text->n - 1 - n])
        n++;
    return n;
}

size_t run_lookup_find(const struct run_lookup *lookup, size_t most, int32_t *draft)
{
    const struct run_ids *text = &lookup->text;
    size_t longest = RUN_NGRAM - 1, best = 0;
    size_t end = text->n > 0 ? lookup->previous[text->n - 1] : 0;

    for (int i = 0; i < MOST_PLACES && end > 0 && longest < MOST_COMMON; i++) {
        const size_t n = common_length(text, end);

        if (n > longest) {
            longest = n;
            best = end;
        }
        end = lookup->previous[end - 1];
    }
    if (best == 0)
        return 0;
    /* A draft longer than the rest of the text goes on with its own tokens. */
    for (size_t i = 0; i < most; i++)
        draft[i] = best + i < text->n ? text->list[best + i] : draft[best + i - text->n];
    return most;
}

/* ---- lengths ---- */

/* All costs are in units of the time of a pass of one token. */

/* Added to the budget for every token: the share of the time that wrong drafts may take. */
#define BUDGET_PER_TOKEN 0.01

/* Without this limit, gains in repetitive text would allow long losses after it. */
#define MAX_BUDGET 2

/* A draft may be expected to cost this much more than the budget. */
#define MAX_DEBT 1

/* The weight of the last pass in the mean time of passes. */
#define WEIGHT 0.125

void run_draft_length_begin(struct run_draft_length *draft, uint32_t most)
{
    *draft = (struct run_draft_length){.most = most, .length = most > 0, .expected_cost = 1};
}

uint32_t run_draft_length_get(const struct run_draft_length *draft)
{
    if (draft->token_seconds <= 0 || draft->budget < 0)
        return 0;
    return (uint32_t)fmin(draft->length, (draft->budget + MAX_DEBT) / draft->expected_cost);
}

static void learn_time(struct run_draft_length *draft, uint32_t n_drafted, double seconds)
{
    const double mean = draft->token_seconds;

    /* A pass of one token takes no longer than one of several. */
    if (mean <= 0 || (n_drafted > 0 && seconds < mean))
        draft->token_seconds = seconds;
    else if (n_drafted == 0) /* longer than two passes: disturbed */
        draft->token_seconds += WEIGHT * (fmin(seconds, 2 * mean) - mean);
}

/* Double the length after a right draft, halve it if at most half the draft was right. */
static uint32_t next_length(const struct run_draft_length *draft, uint32_t n_drafted,
                            uint32_t n_accepted)
{
    uint32_t length = draft->length;

    if (n_drafted == 0)
        length = length > 0 ? length : 1;
    else if (n_accepted == n_drafted)
        length = 2 * n_drafted + 1;
    else if (n_accepted <= n_drafted / 2)
        length = n_drafted / 2;
    return length < draft->most ? length : draft->most;
}

void run_draft_length_learn(struct run_draft_length *draft, uint32_t n_drafted, uint32_t n_accepted,
                            double seconds)
{
    learn_time(draft, n_drafted, seconds);
    if (n_drafted > 0) {
        /* Drafts that take longer than as many passes were disturbed. */
        const double cost = fmin(seconds / draft->token_seconds - 1, n_drafted);

        draft->expected_cost += (cost / n_drafted - draft->expected_cost) / 2;
        draft->budget += n_accepted - cost;
    }
    draft->budget = fmin(draft->budget + BUDGET_PER_TOKEN * (1.0 + n_accepted), MAX_BUDGET);
    draft->length = next_length(draft, n_drafted, n_accepted);
}
