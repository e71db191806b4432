/* The kinds of tokenizers, and declarations shared by the tokenizer's files. */
#pragma once

#include "contrib/runner/tokenizer/tokenizer.h"
#include "gguf/models/tokens.h"

/*
 * Open a kind after the vocabulary was read. May change the defaults, which were copied to the
 * tokenizer.
 */
typedef int run_kind_opener(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure);

/*
 * Append the tokens of a text without added tokens. Returns 0 or a negative errno; ids->is_short is
 * looked at, too.
 */
typedef int run_kind_encoder(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                             struct run_ids *ids);

struct run_tokenizer_kind {
    const char *model;     /* tokenizer.ggml.model */
    run_kind_opener *open; /* or NULL */
    run_kind_encoder *encode;

    run_token_decoder *decode; /* the default */

    /* Texts in which the longest token is searched: none, tokens, or tokens decoded. */
    enum { RUN_SEARCH_NOTHING, RUN_SEARCH_TEXTS, RUN_SEARCH_PIECES } search;
};

enum run_token_mark {
    RUN_MARK_END = 1,         /* ends the model's answer */
    RUN_MARK_TAKES_LEFT = 2,  /* takes in white space before it */
    RUN_MARK_TAKES_RIGHT = 4, /* takes in white space after it */
    RUN_MARK_SHOWN = 8,       /* a control token that is part of the output */
};

/* The functions of the kinds: a file for each. */
run_kind_opener run_spm_open, run_byte_pair_open, run_wordpiece_open, run_plamo_open;
run_kind_encoder run_spm_encode, run_byte_pair_encode, run_wordpiece_encode, run_plamo_encode;

/* Fill in the ids of special tokens and their marks, and correct types known to be wrong. */
int run_special_tokens_find(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure);

/* Add a note for the user. */
void run_tokenizer_add_note(struct run_tokenizer *tokenizer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Append a text with U+2581 in place of spaces. Returns 0 or -ENOMEM. */
int run_text_add_marked(struct gguf_buffer *text, const char *bytes, size_t length);
