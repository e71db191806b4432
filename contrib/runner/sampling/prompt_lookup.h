/*
 * Prompt lookup (Saxena 2023, "Prompt Lookup Decoding"): drafts of the next tokens, copied from an
 * earlier place of the text that the last tokens repeat. Needs no second model.
 */
#ifndef GGUFS_RUNNER_PROMPT_LOOKUP_H
#define GGUFS_RUNNER_PROMPT_LOOKUP_H

#include "contrib/runner/tokenizer/token_ids.h"

/* A text is continued if its last RUN_NGRAM tokens occurred before. */
enum { RUN_NGRAM = 3 };

/*
 * The text so far, and chains of the places that end with the same n-gram, as in deflate: a hash of
 * an n-gram leads to its last place, and each place to the one before it. All zeros is an empty
 * text.
 */
struct run_lookup {
    struct run_ids text;
    uint32_t *heads;    /* of each hash: 1 + the position of the last n-gram's end, or 0 */
    uint32_t *previous; /* of each position: the same, of the n-gram before it */
    size_t previous_capacity;
};

void run_lookup_free(struct run_lookup *lookup);

/* Append a token to the text, in constant time. Returns 0 or -ENOMEM. */
int run_lookup_add(struct run_lookup *lookup, int32_t token);

/*
 * Write up to `most` tokens to `draft`: those that followed the earlier place with the longest
 * context in common, and of equal ones the last. Returns their number: `most`, or 0 if there is no
 * such place. Examines a limited number of places.
 */
size_t run_lookup_find(const struct run_lookup *lookup, size_t most, int32_t *draft);

#endif
