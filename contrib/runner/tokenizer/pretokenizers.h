/*
 * Pre-tokenizers: how byte-pair vocabularies split a text into words before merging. One row for
 * each value of tokenizer.ggml.pre.
 */
#ifndef GGUFS_RUNNER_PRETOKENIZERS_H
#define GGUFS_RUNNER_PRETOKENIZERS_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_MAX_PATTERNS 6

struct run_pretokenizer {
    /*
     * Regular expressions, applied one after the other. Each splits the pieces that the previous
     * ones left into its matches and the text between them. Ends at the first NULL.
     */
    const char *patterns[RUN_MAX_PATTERNS];
    bool
        /* a word that is a token becomes that token, regardless of the merges */
        is_merging_ignored;
    bool is_bos_added;      /* default, if the metadata have no key for it */
    bool is_always_bos;     /* regardless of the metadata */
    bool is_raw;            /* merges characters instead of bytes; spaces are U+2581 */
    bool is_merge_optional; /* files may lack merges */
};

/* Return the row of that name, or NULL. */
const struct run_pretokenizer *run_pretokenizer_find(const char *name);

/* Return the name at that index, or NULL past the last one. */
const char *run_pretokenizer_name(size_t index);

/* Return the name to use for an architecture whose files predate tokenizer.ggml.pre, or NULL. */
const char *run_pretokenizer_of(const char *architecture);

#endif
