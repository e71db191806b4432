#include "contrib/runner/sampling/draft_length.h"

#include <math.h>

/* Added to the balance for every token: the share of the time that wrong drafts may take. */
#define ALLOWANCE 0.01

/* Limit of the balance: without it, gains in repetitive text would allow long losses after it. */
#define MOST_BALANCE 2

/* A draft may cost more than the balance by one pass. */
#define OVERDRAFT 1

/* The weight of the last pass in the mean time of passes. */
#define WEIGHT 0.125

void run_draft_length_begin(struct run_draft_length *draft, uint32_t most)
{
    *draft = (struct run_draft_length){.most = most, .length = most > 0, .draft_cost = 1};
}

uint32_t run_draft_length_get(const struct run_draft_length *draft)
{
    const double funds = draft->balance + OVERDRAFT;

    if (draft->token_seconds <= 0 || draft->balance < 0)
        return 0;
    return draft->length * draft->draft_cost <= funds ? draft->length
                                                      : (uint32_t)(funds / draft->draft_cost);
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

/* Double the length while drafts are right, and halve it if no more than half of one is. */
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

        draft->draft_cost += (cost / n_drafted - draft->draft_cost) / 2;
        draft->balance += n_accepted - cost;
    }
    draft->balance = fmin(draft->balance + ALLOWANCE * (1.0 + n_accepted), MOST_BALANCE);
    draft->length = next_length(draft, n_drafted, n_accepted);
}
