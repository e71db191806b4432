/* The vocabulary, as the metadata have it: texts, types and scores of the tokens. */
#pragma once

#include "contrib/runner/tree/metadata.h"
#include "gguf/models/tokens.h"
#include "gguf/support/keyed_hash.h"
#include "gguf/support/limits.h"

struct run_vocabulary {
    uint32_t n;
    char *texts;      /* concatenated, without NULs */
    uint32_t *starts; /* n + 1 offsets in `texts` */
    uint8_t *types;   /* enum gguf_token_type */
    float *scores;    /* NULL if they were not read or the model has none */
    uint32_t *slots;  /* a hash table from texts to ids; see token_vocabulary.c; 0 is a free slot */
    uint32_t slot_mask;       /* number of slots, a power of two, minus one */
    struct gguf_hash_key key; /* of the hash table */
    bool is_unique;           /* no two tokens have the same text */
    uint32_t longest_bytes;
};

/*
 * Read tokenizer.ggml.tokens and .token_type. Returns 0 or a negative errno; in both
 * cases, free the vocabulary with run_vocabulary_free().
 */
int run_vocabulary_read(const struct run_metadata *metadata, struct run_vocabulary *vocabulary,
                        struct run_failure *failure);

/* Read tokenizer.ggml.scores, if there are any. Returns 0 or a negative errno. */
int run_vocabulary_read_scores(const struct run_metadata *metadata,
                               struct run_vocabulary *vocabulary, struct run_failure *failure);

void run_vocabulary_free(struct run_vocabulary *vocabulary);

/* Return the text of a token; it does not end with a NUL. */
static inline const char *run_vocabulary_text(const struct run_vocabulary *vocabulary, uint32_t id,
                                              uint32_t *length)
{
    *length = vocabulary->starts[id + 1] - vocabulary->starts[id];
    return vocabulary->texts + vocabulary->starts[id];
}

/* Return true if token `id` has this text. */
bool run_vocabulary_is_text(const struct run_vocabulary *vocabulary, uint32_t id, const char *text,
                            size_t length);

/* Return the token with that text, the first if there are several, or -1. */
int32_t run_vocabulary_find(const struct run_vocabulary *vocabulary, const char *text,
                            size_t length);

/* The same for tokens that text may become, that is all but control tokens. */
int32_t run_vocabulary_find_text(const struct run_vocabulary *vocabulary, const char *text,
                                 size_t length);

/* Return true for a token that text never becomes: a control token, or the unknown token. */
static inline bool run_vocabulary_is_control(const struct run_vocabulary *vocabulary, uint32_t id)
{
    return gguf_token_type_is_control(vocabulary->types[id]);
}

/*
 * Fill in the token of each byte: the one written <0x41>, or else the byte itself; -1 if there is
 * none.
 */
void run_vocabulary_find_bytes(const struct run_vocabulary *vocabulary, int32_t ids[256]);
