#include "gguf/support/conventions/token_types.h"

#include <stddef.h>

const char *gguf_token_type_name(uint64_t type)
{
    static const char *const names[] = {
        [GGUF_TOKEN_UNDEFINED] = "undefined",
        [GGUF_TOKEN_NORMAL] = "normal",
        [GGUF_TOKEN_UNKNOWN] = "unknown",
        [GGUF_TOKEN_CONTROL] = "control",
        [GGUF_TOKEN_USER_DEFINED] = "user_defined",
        [GGUF_TOKEN_UNUSED] = "unused",
        [GGUF_TOKEN_BYTE] = "byte",
    };

    return type < sizeof names / sizeof *names ? names[type] : NULL;
}
