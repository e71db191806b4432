#include "gguf/vocabulary.h"

#include <inttypes.h>

#define TOKENS "tokenizer.ggml.tokens"

static const struct gguf_key *find_list(const struct gguf_model *model, const char *name)
{
    const struct gguf_key *key = gguf_find_key(model, name);

    return key && key->value.type == GGUF_ARRAY ? key : NULL;
}

void gguf_check_vocabulary(const struct gguf_model *model, struct gguf_report *report)
{
    static const char *const names[] = {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"};
    const struct gguf_key *tokens = find_list(model, TOKENS);

    for (size_t i = 0; tokens && i < sizeof names / sizeof *names; i++) {
        const struct gguf_key *key = find_list(model, names[i]);

        if (key && key->value.array.n_elements != tokens->value.array.n_elements)
            gguf_warning(report, GGUF_RULE_VOCABULARY, gguf_key_place(key),
                         "it has %" PRIu64 " elements, but \"" TOKENS "\" has %" PRIu64,
                         key->value.array.n_elements, tokens->value.array.n_elements);
    }
}
