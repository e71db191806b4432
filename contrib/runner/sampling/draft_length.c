#include "contrib/runner/sampling/draft_length.h"

#include <math.h>

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
