/* The kind for models whose tokens are the 256 bytes. */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

static int encode_bytes(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                        bool is_first, struct run_ids *ids)
{
    int code = 0;

    (void)tokenizer;
    (void)is_first;
    for (size_t i = 0; code == 0 && i < length; i++)
        code = run_ids_add(ids, (unsigned char)text[i]);
    return code;
}

const struct run_tokenizer_kind run_kind_bytes = {
    .model = "",
    .encode = encode_bytes,
};
