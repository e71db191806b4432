/* Types of tokens, the values of tokenizer.ggml.token_type. */
#ifndef GGUFS_GGUF_TOKEN_TYPES_H
#define GGUFS_GGUF_TOKEN_TYPES_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
