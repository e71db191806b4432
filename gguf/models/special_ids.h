/* Ids of special tokens: their keys, and the defaults of missing keys. */
#pragma once

#include "gguf/models/pretokenizers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The id of a token that does not exist. */
#define GGUF_NO_TOKEN (-1)

/* Special tokens; GGUF_NO_TOKEN where the vocabulary has none. */
struct gguf_special_ids {
    int32_t bos; /* begins a text; CLS in BERT */
    int32_t eos; /* ends a text */
    int32_t eot; /* ends a turn */
    int32_t eom; /* ends a message, the turn goes on */
    int32_t unk; /* stands for text without a token */
    int32_t sep;
    int32_t pad;
    int32_t mask;
    bool is_bos_added; /* to a text that is encoded */
    bool is_eos_added;
};

/* A key with an id. A later one replaces the id of an earlier one. */
struct gguf_special_key {
    const char *name;
    size_t member; /* offset of the int32_t in struct gguf_special_ids */
};

#define GGUF_N_SPECIAL_KEYS 9
extern const struct gguf_special_key gguf_special_keys[GGUF_N_SPECIAL_KEYS];

static inline int32_t *gguf_special_id(struct gguf_special_ids *ids,
                                       const struct gguf_special_key *key)
{
    return (int32_t *)((char *)ids + key->member);
}

/* Defaults for a tokenizer.ggml.model if keys are missing. */
struct gguf_tokenizer_defaults {
    const char *model;
    struct gguf_special_ids ids;
    bool is_space_added; /* a space before each text */
};

/* Never NULL: for kinds that have no defaults, all ids are GGUF_NO_TOKEN. */
const struct gguf_tokenizer_defaults *gguf_tokenizer_defaults_find(const char *model);

/*
 * Complete the ids once the keys have been read. `pretokenizer` is NULL if the kind has none;
 * `end_of_text` is the token <|endoftext|>, or GGUF_NO_TOKEN.
 */
void gguf_special_ids_complete(struct gguf_special_ids *ids, const char *model,
                               const struct gguf_pretokenizer *pretokenizer, bool has_add_bos_key,
                               int32_t end_of_text);
