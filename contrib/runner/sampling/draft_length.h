/*
 * The number of draft tokens to verify in a pass. A pass of several tokens takes longer than a pass
 * of one, by a factor that depends on the model and the machine, and gains the accepted drafts.
 * Gains and losses are measured, so that wrong drafts cost about 1 % of the time.
 */
#pragma once

#include <stdint.h>

struct run_draft_length {
    uint32_t most;
    uint32_t length;      /* of the next draft, if it pays; 0 after a wrong draft of one token */
    double token_seconds; /* of a pass of one token; 0 before the first */
    double expected_cost; /* of a draft token, in passes of one token */
    double budget;        /* gains and allowance less costs, in passes of one token */
};

void run_draft_length_begin(struct run_draft_length *draft, uint32_t most);

/* Return the number of tokens to draft now, at most `most`; 0 if it does not pay. */
uint32_t run_draft_length_get(const struct run_draft_length *draft);

/* Account for a pass of 1 + n_drafted tokens with n_accepted accepted drafts. */
void run_draft_length_learn(struct run_draft_length *draft, uint32_t n_drafted, uint32_t n_accepted,
                            double seconds);
