/*
 * How byte-pair vocabularies cut a text into words before they merge: one row for each name of
 * tokenizer.ggml.pre. A row stands for the regular expressions of the model's tokenizer.json, one
 * behind the other: each cuts what the one before has left.
 */
#ifndef GGUFS_RUNNER_PRETOKENIZERS_H
#define GGUFS_RUNNER_PRETOKENIZERS_H

#include "contrib/runner/tokenizer/word_patterns.h"

#define RUN_MAX_PATTERNS 6

struct run_pretokenizer {
    struct run_pattern patterns[RUN_MAX_PATTERNS]; /* up to the first without function */
    bool is_merging_ignored; /* a word that is a token is that one, whatever the merges say */
    bool is_bos_added;       /* unless the metadata say otherwise */
    bool is_always_bos;      /* whatever they say */
    bool is_raw;             /* merges characters: no code for bytes, spaces are U+2581 */
    bool is_merge_optional;  /* its files may come without merges */
};

/* The row of that name, or NULL; the names, NULL behind the last. */
const struct run_pretokenizer *run_pretokenizer_find(const char *name);
const char *run_pretokenizer_name(size_t index);

/* The name that fits models of that architecture whose files are too old to have one, or NULL. */
const char *run_pretokenizer_of(const char *architecture);

/* A word; 0 or a negative errno, which ends the cutting. */
typedef int run_word_taker(void *context, const char *word, size_t length);

/* Gives all words of the text, which together are the text. */
int run_pretokenize(const struct run_pretokenizer *pretokenizer, const char *text, size_t length,
                    run_word_taker *take, void *context);

#endif
