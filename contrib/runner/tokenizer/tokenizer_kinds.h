/* The kinds of tokenizers, and declarations shared by the tokenizer's files. */
#pragma once

#include "contrib/runner/tokenizer/prefix_trie.h"
#include "contrib/runner/tokenizer/token_vocabulary.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "gguf/models/tokens.h"
#include "gguf/support/arrays.h"

struct run_tokenizer_kind {
    const char *model; /* tokenizer.ggml.model */

    /*
     * Make `state` after the vocabulary was read. May change the defaults, which were copied to the
     * tokenizer. May be NULL.
     */
    int (*open)(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                struct run_failure *failure);
    void (*close)(void *state);

    /*
     * Append the tokens of a text without added tokens. `is_first` is true at the start of the text
     * and after a control token. Returns 0, -ENOMEM or another negative errno.
     */
    int (*encode)(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                  bool is_first, struct run_ids *ids);

    /*
     * Write the bytes of an ordinary token, at most as many as its text has, and return their
     * number. NULL if the bytes are the text.
     */
    size_t (*decode)(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     char *out);
};

/* Size of the notes of a tokenizer, with the NUL. */
#define RUN_NOTE_BYTES 1024

struct run_tokenizer {
    const struct run_tokenizer_kind *kind;
    void *state; /* owned by the kind */
    struct run_vocabulary vocabulary;
    struct gguf_special_ids special;
    bool is_space_added;
    char *pieces;                       /* texts of all tokens, concatenated */
    uint32_t *piece_starts;             /* n + 1 offsets in `pieces` */
    uint8_t *marks;                     /* one enum run_token_mark set per token */
    struct run_prefix_trie user_tokens; /* added tokens matched in any text */
    /* user_tokens, and the tokens matched only with RUN_ENCODE_SPECIAL */
    struct run_prefix_trie control_tokens;
    char note[RUN_NOTE_BYTES];
};

enum run_token_mark {
    RUN_MARK_END = 1,         /* ends the model's answer */
    RUN_MARK_TAKES_LEFT = 2,  /* takes in white space before it */
    RUN_MARK_TAKES_RIGHT = 4, /* takes in white space after it */
    RUN_MARK_SHOWN = 8,       /* a control token that is part of the output */
};

extern const struct run_tokenizer_kind run_kind_llama;
extern const struct run_tokenizer_kind run_kind_gpt2;
extern const struct run_tokenizer_kind run_kind_gemma4;
extern const struct run_tokenizer_kind run_kind_bert;
extern const struct run_tokenizer_kind run_kind_rwkv;
extern const struct run_tokenizer_kind run_kind_plamo2;
extern const struct run_tokenizer_kind run_kind_bytes; /* not in the table */

/* Fill in the ids of special tokens and their marks, and correct types known to be wrong. */
int run_special_tokens_find(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure);

/* Add a note for the user. */
void run_tokenizer_add_note(struct run_tokenizer *tokenizer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Decode a token's text: U+2581 becomes a space. */
size_t run_decode_space_marks(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, char *out);

/* Append a text with U+2581 in place of spaces. Returns 0 or -ENOMEM. */
int run_text_add_marked(struct gguf_buffer *text, const char *bytes, size_t length);
