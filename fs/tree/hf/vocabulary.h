/*
 * The model's vocabulary, for the files that describe its tokenizer. Made with the tree; the index
 * of the tokens, about 30 bytes for each, is made when a file is first read.
 */
#pragma once

#include "gguf/model.h"
#include "gguf/models/tokens.h"
#include "gguf/support/keyed_hash.h"

#include <pthread.h>

enum fs_tokenizer_kind {
    FS_BYTE_PAIR,     /* gpt2, gemma4 */
    FS_SENTENCEPIECE, /* llama: byte pairs, merged in the order of scores */
    FS_UNIGRAM,       /* t5 */
    FS_WORDPIECE,     /* bert */
};

/* How tokens write the bytes that they stand for. */
enum fs_notation {
    FS_AS_BYTES,
    FS_IN_BYTE_ALPHABET, /* tokens.h */
    FS_WITH_SPACE_MARKS, /* U+2581 for a space */
    FS_WITH_ESCAPES,     /* gguf_token_unescape() */
};

struct fs_vocabulary {
    const struct gguf_model *model;
    /* Reason why tokenizer.json cannot be made, a sentence for the user; NULL if it can. */
    const char *obstacle;
    char obstacle_text[sizeof(struct gguf_quoted) + 200]; /* of an obstacle that quotes the file */
    pthread_mutex_t lock;

    /* The arrays of tokenizer.ggml.*; NULL if the key is missing or its elements do not fit. */
    const struct gguf_array *tokens, *merges;      /* strings */
    const struct gguf_array *token_types, *scores; /* numbers */
    enum fs_notation notation;                     /* of the tokens */

    /* Other keys; set unless there is an obstacle. */
    const char *name; /* tokenizer.ggml.model */
    enum fs_tokenizer_kind kind;
    const struct gguf_array *charsmap;
    const struct gguf_pretokenizer *pretokenizer; /* of FS_BYTE_PAIR */
    const struct gguf_strip_rule *strip_rule;
    bool is_space_added;  /* a space before each text */
    bool is_space_merged; /* runs of spaces become one */
    bool is_lowered, is_stripped;
    uint64_t context_length; /* 0: unknown */
    uint32_t n_tokens;

    /* The index, set by fs_vocabulary_load(). */
    struct gguf_special_ids ids;
    uint32_t
        *starts;    /* n_tokens + 1 offsets in `tokens`, of a length and a text; NULL: not loaded */
    uint8_t *types; /* enum gguf_token_type, corrected */
    uint32_t *slots; /* a hash table from texts to ids */
    uint32_t slot_mask;
    struct gguf_hash_key key;
    float lowest_score; /* of a token of the type NORMAL; 0 without scores */
    /*
     * The tokens in the order in which merging produces them; NULL if fs_has_merges() or if the
     * kind does not merge.
     */
    uint32_t *merge_order;
};

/* Return true if the merges of the file count. SentencePiece merges by score. */
static inline bool fs_has_merges(const struct fs_vocabulary *vocabulary)
{
    return vocabulary->kind == FS_BYTE_PAIR && vocabulary->merges;
}

/* Return an element of an array of numbers. */
struct gguf_value fs_array_element(const struct gguf_array *array, uint64_t index);
double fs_array_number(const struct gguf_array *array, uint64_t index);

/* The same for an array of integers that are bytes, signed or not. */
static inline uint8_t fs_array_byte(const struct gguf_array *array, uint64_t index)
{
    return (uint8_t)fs_array_element(array, index).u64;
}

/* Returns 0 or -ENOMEM. Free `vocabulary` with fs_vocabulary_free(), which accepts NULL. */
int fs_vocabulary_make(const struct gguf_model *model, struct fs_vocabulary **vocabulary);
void fs_vocabulary_free(struct fs_vocabulary *vocabulary);

/*
 * Make the index unless it exists. The functions below need it. Any thread may call all of them.
 * Returns 0 or a negative errno.
 */
int fs_vocabulary_load(struct fs_vocabulary *vocabulary);

/* Return the text of a token in the vocabulary's notation. */
static inline struct gguf_string fs_vocabulary_text(const struct fs_vocabulary *vocabulary,
                                                    uint32_t id)
{
    const struct gguf_array *tokens = vocabulary->tokens;
    const uint32_t start = vocabulary->starts[id] + tokens->encoding.length_bytes;

    return (struct gguf_string){(const char *)tokens->data + start,
                                vocabulary->starts[id + 1] - start};
}

/* Return the first token with that text, or GGUF_NO_TOKEN. */
int32_t fs_vocabulary_find(const struct fs_vocabulary *vocabulary, struct gguf_string text);
