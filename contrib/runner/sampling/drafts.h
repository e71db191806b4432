/* Drafts of next tokens by prompt lookup, and how many of them pay. */
#pragma once

#include "contrib/runner/tokenizer/token_ids.h"

/*
 * Prompt lookup (Saxena 2023, "Prompt Lookup Decoding"): if the last tokens occurred earlier in the
 * text, the tokens that followed there are drafts of the next tokens. Needs no second model. A text
 * is continued if its last RUN_NGRAM tokens occurred before.
 */
enum { RUN_NGRAM = 3 };

/*
 * The text so far, and hash chains of its n-grams, as in deflate: the hash of an n-gram leads to
 * its last position, and each position to the previous one with the same hash. All zeros is an
 * empty text.
 */
struct run_lookup {
    struct run_ids text;
    uint32_t *heads;    /* of each hash: 1 + the position of the last n-gram's end, or 0 */
    uint32_t *previous; /* of each position: the same of the previous n-gram */
    size_t previous_capacity;
};

void run_lookup_free(struct run_lookup *lookup);

/* Append a token to the text, in constant time. Returns 0 or -ENOMEM. */
int run_lookup_add(struct run_lookup *lookup, int32_t token);

/* Remove the last token, if there is one. */
void run_lookup_drop(struct run_lookup *lookup);

/*
 * Write `most` tokens to `draft`: the tokens after the earlier position that has the longest common
 * context with the end of the text; of equal positions, the last. Returns `most`, or 0 if no
 * position matches. Examines a limited number of positions.
 */
size_t run_lookup_find(const struct run_lookup *lookup, size_t most, int32_t *draft);

/*
 * The number of draft tokens to verify in a pass. A pass of several tokens takes longer than a pass
 * of one, by a factor that depends on the model and the machine, and gains the accepted drafts.
 * Gains and losses are measured, so that wrong drafts cost about 1 % of the time.
 */
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
