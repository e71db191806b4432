/*
 * Special tokens that files do not mark as special, or mark wrongly. They are recognized by their
 * texts, with the lists and exceptions of llama.cpp (src/llama-vocab.cpp).
 */
#ifndef GGUFS_GGUF_SPECIAL_TEXTS_H
#define GGUFS_GGUF_SPECIAL_TEXTS_H

#include "gguf/models/tokens.h"

#include <stddef.h>

/* These lists end with NULL. */

/* Texts that end a turn. The first one in the vocabulary is the EOT, unless a key gives another. */
extern const char *const gguf_turn_ends[];

/* More texts that end a model's output. */
extern const char *const gguf_other_ends[];

/* Code models write these after they filled the gap: padding, next repository, next file. */
extern const char *const gguf_filled_ends[];

/* Separators in the output of gpt-oss, which readers need. In messages they are control tokens. */
extern const char *const gguf_shown_texts[];

/* Return the token with that text, or a negative number. */
typedef int32_t gguf_token_finder(const void *vocabulary, const char *text);

/* Correct the types of tokens, which are indexed by id. */
void gguf_correct_token_types(uint8_t *types, gguf_token_finder *find, const void *vocabulary);

/* Sides on which a special token absorbs white space, as bits. GGUF does not record them. */
enum {
    GGUF_STRIP_LEFT = 1,
    GGUF_STRIP_RIGHT = 2,
};

struct gguf_strip_rule;

/*
 * Return the rule of a model that is known to have tokens that absorb white space, or NULL. The
 * arguments are general.name, tokenizer.ggml.pre and general.architecture; each may be NULL.
 */
const struct gguf_strip_rule *gguf_strip_rule_find(const char *name, const char *pre,
                                                   const char *architecture);

/* Return where the token strips white space. `rule` may be NULL. */
unsigned gguf_strips(const struct gguf_strip_rule *rule, const char *text, size_t length,
                     enum gguf_token_type type);

#endif
