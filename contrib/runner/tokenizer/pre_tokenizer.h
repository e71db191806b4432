/* Splits a text into words with a pre-tokenizer's regular expressions, compiled by PCRE2's JIT. */
#pragma once

#include "gguf/models/pretokenizers.h"

struct run_pre_tokenizer {
    struct pcre2_real_code_8 *patterns[GGUF_MAX_PATTERNS]; /* compiled; the first NULL ends them */
};

/*
 * Compile the patterns. If the system has no JIT or forbids it, they are interpreted, which is
 * slower: call it before the process confines itself. Returns 0 or -ENOMEM; in both cases, free
 * them with run_pre_tokenizer_close(). Any number of threads may use them.
 */
int run_pre_tokenizer_open(const struct gguf_pretokenizer *pretokenizer,
                           struct run_pre_tokenizer *splitter);
void run_pre_tokenizer_close(struct run_pre_tokenizer *splitter);

/* Take a word of the text. Returns 0, or a negative errno, which ends the splitting. */
typedef int run_word_taker(void *context, const char *word, size_t length);

/*
 * Pass all words to `take`, in order; concatenated they are the text. No word is empty. A byte that
 * is not part of valid UTF-8 is split like U+FFFD. Returns 0, -ENOMEM, -EOVERFLOW if the text
 * exceeds one of PCRE2's limits, or what `take` returned.
 */
int run_pre_tokenizer_split(const struct run_pre_tokenizer *splitter, const char *text,
                            size_t length, run_word_taker *take, void *context);
