#include "gguf/models/token_types.h"

#include <stddef.h>

const char *gguf_token_type_name(uint64_t type)
{
    switch (type) {
    case GGUF_TOKEN_UNDEFINED:
        return "undefined";
    case GGUF_TOKEN_NORMAL:
        return "normal";
    case GGUF_TOKEN_UNKNOWN:
        return "unknown";
    case GGUF_TOKEN_CONTROL:
        return "control";
    case GGUF_TOKEN_USER_DEFINED:
        return "user_defined";
    case GGUF_TOKEN_UNUSED:
        return "unused";
    case GGUF_TOKEN_BYTE:
        return "byte";
    default:
        return NULL;
    }
}
