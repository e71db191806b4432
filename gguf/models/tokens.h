/* Tokens of vocabularies: their types, their texts, and special ones that files do not mark. */
#pragma once

#include "gguf/models/pretokenizers.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of tokenizer.ggml.token_type. */
enum gguf_token_type {
    GGUF_TOKEN_UNDEFINED = 0,
    GGUF_TOKEN_NORMAL = 1,
    GGUF_TOKEN_UNKNOWN = 2, /* stands for text without a token */
    GGUF_TOKEN_CONTROL = 3,
    GGUF_TOKEN_USER_DEFINED = 4, /* added later; never split */
    GGUF_TOKEN_UNUSED = 5,
    GGUF_TOKEN_BYTE = 6, /* written as <0x41> */
};

/* Return true for a type of tokens that text never becomes by splitting and merging. */
static inline bool gguf_token_type_is_control(uint8_t type)
{
    return type == GGUF_TOKEN_CONTROL || type == GGUF_TOKEN_UNKNOWN;
}

/* Return the name of a type, like "user_defined", or NULL if it is unknown. */
const char *gguf_token_type_name(uint64_t type);

/* The bytes of U+2581, which stands for a space in vocabularies of SentencePiece. */
#define GGUF_SPACE_MARK       "\xe2\x96\x81"
#define GGUF_SPACE_MARK_BYTES (sizeof GGUF_SPACE_MARK - 1)

/* Format of the text of a token of the type BYTE, and its length. */
#define GGUF_BYTE_TOKEN_FORMAT "<0x%02X>"
#define GGUF_BYTE_TOKEN_BYTES  6u

/* Parse the text of a token of the type BYTE, like <0x41>. Returns false if it has another form. */
bool gguf_byte_token_parse(const char *text, size_t length, uint8_t *byte);

/* The next functions write at most `length` bytes and return their number. */

/* Decode U+2581 to a space. */
size_t gguf_space_marks_decode(const char *text, size_t length, char *out);

/* Decode the escapes like Python's in tokens of the kind "rwkv". */
size_t gguf_token_unescape(const char *text, size_t length, char *out);

/*
 * GPT-2's alphabet, which writes each byte as a visible character: visible characters of Latin-1
 * stand for themselves, the other bytes become U+0100, U+0101 and so on, in order.
 */

/* Write the character of a byte, one or two bytes of UTF-8, and return its length. */
size_t gguf_alphabet_put(unsigned char byte, char out[2]);

/*
 * Decode a text to the bytes that it stands for. A text with characters outside the alphabet stands
 * for itself. Writes at most `length` bytes and returns their number.
 */
size_t gguf_alphabet_decode(const char *text, size_t length, char *out);

/*
 * Special tokens that files do not mark as special, or mark wrongly. They are recognized by their
 * texts, with the lists and exceptions of llama.cpp (src/llama-vocab.cpp). The lists end with NULL.
 */

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

/* ---- ids of special tokens: their keys, and the defaults of missing keys ---- */

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
