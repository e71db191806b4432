/*
 * Prompt lookup (Saxena 2023, "Prompt Lookup Decoding"): if the last tokens occurred earlier in the
 * text, the tokens that followed there are drafts of the next tokens. Needs no second model.
 */
#pragma once

#include "contrib/runner/tokenizer/token_ids.h"

/* A text is continued if its last RUN_NGRAM tokens occurred before. */
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

/*
 * Write `most` tokens to `draft`: the tokens after the earlier position that has the longest common
 * context with the end of the text; of equal positions, the last. Returns `most`, or 0 if no
 * position matches. Examines a limited number of positions.
 */
size_t run_lookup_find(const struct run_lookup *lookup, size_t most, int32_t *draft);
