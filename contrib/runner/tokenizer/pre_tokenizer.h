/* Splits a text into words with a pre-tokenizer's regular expressions, compiled by PCRE2's JIT. */
#pragma once

#include "contrib/runner/tree/failure.h"
#include "gguf/models/pretokenizers.h"

struct run_pre_tokenizer;

/*
 * Compile the patterns. If the system has no JIT or forbids it, they are interpreted, which is
 * slower. Returns 0, or -ENOMEM with `*out` NULL. Free the splitter with run_pre_tokenizer_close(),
 * which accepts NULL. A splitter never changes, so any number of threads may use it.
 */
int run_pre_tokenizer_open(const struct gguf_pretokenizer *pretokenizer,
                           struct run_pre_tokenizer **out, struct run_failure *failure);

void run_pre_tokenizer_close(struct run_pre_tokenizer *splitter);

/* Return true if the patterns run as machine code, not interpreted. */
bool run_pre_tokenizer_has_jit(const struct run_pre_tokenizer *splitter);

/*
 * Reserve executable memory for the machine code of one splitter. Call it once in a process that
 * may not map executable memory later, for instance because it will be confined. Without the call,
 * or if it fails, patterns are interpreted. The reserve is 64 KiB; no pre-tokenizer needs more than
 * 10 KiB.
 */
void run_pre_tokenizer_reserve(void);

/* Take a word of the text. Returns 0, or a negative errno, which ends the splitting. */
typedef int run_word_taker(void *context, const char *word, size_t length);

/*
 * Pass all words to `take`, in order; concatenated they are the text. No word is empty. A byte that
 * is not part of valid UTF-8 is split like U+FFFD. Returns 0, -ENOMEM, -EOVERFLOW if the text
 * exceeds one of PCRE2's limits, or what `take` returned.
 */
int run_pre_tokenizer_split(const struct run_pre_tokenizer *splitter, const char *text,
                            size_t length, run_word_taker *take, void *context);
