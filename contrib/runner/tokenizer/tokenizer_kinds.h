/*
 * The kinds of tokenizers: what the parts of the tokenizer tell each other.
 */
#ifndef GGUFS_RUNNER_TOKENIZER_KINDS_H
#define GGUFS_RUNNER_TOKENIZER_KINDS_H

#include "contrib/runner/tokenizer/prefixes.h"
#include "contrib/runner/tokenizer/token_vocabulary.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "gguf/support/safe_print.h"

/* What a kind sets where the metadata have no key. */
struct run_kind_defaults {
    struct run_special_ids ids;
    bool is_space_added;
};

struct run_tokenizer_kind {
    const char *model; /* tokenizer.ggml.model */
    struct run_kind_defaults defaults;

    /* Makes `state` after the vocabulary was read; may change the defaults, which were copied to
     * the tokenizer. NULL: there is none. */
    int (*open)(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                struct run_failure *failure);
    void (*close)(void *state);

    /* Appends the tokens of a text in which no added tokens are. `is_first`: it stands at the start
     * or behind a control token. 0, -ENOMEM or another negative errno. */
    int (*encode)(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                  bool is_first, struct run_ids *ids);

    /* Writes the bytes that a token without a task of its own stands for, at most as many as its
     * text has, and returns their number; NULL if they are its text. */
    size_t (*decode)(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     char *out);
};

/* Bytes of a note before its control characters are escaped, with a NUL. */
#define RUN_NOTE_BYTES 256

struct run_tokenizer {
    const struct run_tokenizer_kind *kind;
    void *state; /* of the kind */
    struct run_vocabulary vocabulary;
    struct run_special_ids special;
    bool is_space_added;
    char *pieces;                       /* one after the other */
    uint32_t *piece_starts;             /* offsets in `pieces`, one more than tokens */
    uint8_t *marks;                     /* of tokens: enum run_token_mark */
    struct run_prefixes user_tokens;    /* added tokens that any text may have */
    struct run_prefixes control_tokens; /* these, and those that need RUN_ENCODE_SPECIAL */
    char note[GGUF_ESCAPED_BYTES * RUN_NOTE_BYTES];
};

enum run_token_mark {
    RUN_MARK_END = 1,         /* ends what the model says */
    RUN_MARK_TAKES_LEFT = 2,  /* white space before it belongs to it */
    RUN_MARK_TAKES_RIGHT = 4, /* white space behind it belongs to it */
    RUN_MARK_SHOWN = 8,       /* a control token that is part of the output */
};

extern const struct run_tokenizer_kind run_kind_llama;
extern const struct run_tokenizer_kind run_kind_gpt2;
extern const struct run_tokenizer_kind run_kind_gemma4;
extern const struct run_tokenizer_kind run_kind_bert;
extern const struct run_tokenizer_kind run_kind_t5;
extern const struct run_tokenizer_kind run_kind_rwkv;
extern const struct run_tokenizer_kind run_kind_plamo2;
extern const struct run_tokenizer_kind run_kind_bytes; /* not in the table */

/* Fills in the ids of tokens with a task, their marks, and corrects types that are known to be
 * wrong. */
int run_special_tokens_find(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure);

/* Says something to the user; the first note counts. */
void run_tokenizer_set_note(struct run_tokenizer *tokenizer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The text with spaces in the place of U+2581. */
size_t run_decode_space_marks(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, char *out);

/* Text that is made, all zeros is an empty one; 0 or -ENOMEM. */
struct run_text {
    char *bytes;
    size_t n, capacity;
};

int run_text_add(struct run_text *text, const char *bytes, size_t length);

/* Adds the text with U+2581 in the place of spaces. */
int run_text_add_marked(struct run_text *text, const char *bytes, size_t length);

#endif
