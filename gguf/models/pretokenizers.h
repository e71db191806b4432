/*
 * Pre-tokenizers: how byte-pair vocabularies split a text into words before merging. One row for
 * all values of tokenizer.ggml.pre that mean the same.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define GGUF_MAX_PATTERNS 6

struct gguf_pretokenizer {
    const char *names; /* values of tokenizer.ggml.pre, separated by spaces */
    /*
     * Regular expressions, applied one after the other. Each splits the pieces that the previous
     * ones left into its matches and the text between them. Ends at the first NULL.
     */
    const char *patterns[GGUF_MAX_PATTERNS]; /* in PCRE2's syntax */
    bool is_merging_ignored; /* a word that is a token becomes it, regardless of the merges */
    bool is_bos_added;       /* default, if the metadata have no key for it */
    bool is_always_bos;      /* regardless of the metadata */
    bool is_raw;             /* merges characters instead of bytes; spaces are U+2581 */
    bool is_merge_optional;  /* files may lack merges */
};

/* Return the row of that name, or NULL. */
const struct gguf_pretokenizer *gguf_pretokenizer_find(const char *name);

/* Return the row at that index, or NULL past the last one. */
const struct gguf_pretokenizer *gguf_pretokenizer_at(size_t index);

enum gguf_pretokenizer_origin {
    GGUF_PRE_KNOWN,
    GGUF_PRE_MISSING, /* neither the file nor its architecture names one: "default" is used */
    GGUF_PRE_UNKNOWN, /* the file names one that is not in the table: "smaug-bpe" is used */
};

/*
 * Return the row for a vocabulary, never NULL. The arguments are tokenizer.ggml.model,
 * tokenizer.ggml.pre, which may be NULL, and general.architecture, by which files are known that
 * predate tokenizer.ggml.pre.
 */
const struct gguf_pretokenizer *gguf_pretokenizer_choose(const char *model, const char *pre,
                                                         const char *architecture,
                                                         enum gguf_pretokenizer_origin *origin);

/*
 * Write a pattern in the syntax of Oniguruma (https://github.com/kkos/oniguruma, doc/RE), which
 * Hugging Face's tokenizers use, with its NUL. `out` must have room for strlen(pattern) + 1 bytes.
 */
void gguf_pattern_to_oniguruma(const char *pattern, char *out);
