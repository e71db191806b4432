/*
 * Pre-tokenizers: how byte-pair vocabularies split a text into words before they merge. One row for
 * each name of tokenizer.ggml.pre.
 */
#ifndef GGUFS_RUNNER_PRETOKENIZERS_H
#define GGUFS_RUNNER_PRETOKENIZERS_H

#include <stdbool.h>
#include <stddef.h>

#define RUN_MAX_PATTERNS 6

struct run_pretokenizer {
    /* Regular expressions, applied one after the other: each splits what the previous ones left
     * into its matches and what lies between them. Up to the first NULL. */
    const char *patterns[RUN_MAX_PATTERNS];
    bool
        is_merging_ignored; /* a word that is a token becomes that token, whatever the merges say */
    bool is_bos_added;      /* unless the metadata says otherwise */
    bool is_always_bos;     /* whatever the metadata says */
    bool is_raw;            /* merges characters: bytes are not encoded, spaces are U+2581 */
    bool is_merge_optional; /* files may come without merges */
};

/* Return the row of that name, or NULL. */
const struct run_pretokenizer *run_pretokenizer_find(const char *name);

/* Return the name at that index, or NULL past the last one. */
const char *run_pretokenizer_name(size_t index);

/* Return the name for models of an architecture whose files are older than tokenizer.ggml.pre, or
 * NULL. */
const char *run_pretokenizer_of(const char *architecture);

#endif
