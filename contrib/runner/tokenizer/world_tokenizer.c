/*
 * The kind "rwkv": repeatedly takes the longest token that is a prefix of the text. In GGUF its
 * tokens are written with escapes like Python's.
 */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <stdlib.h>

struct world {
    struct run_prefix_trie tokens;
    char *texts; /* without escapes */
};

static size_t unescape(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                       char *out)
{
    (void)tokenizer;
    return gguf_token_unescape(text, length, out);
}

static int open_world(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                      struct run_failure *failure)
{
    const struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct world *world = calloc(1, sizeof *world);
    size_t at = 0;

    (void)metadata;
    tokenizer->state = world;
    if (!world)
        return run_fail_memory(failure);
    world->texts = malloc(vocabulary->starts[vocabulary->n] + 1);
    if (!world->texts)
        return run_fail_memory(failure);
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);
        size_t n;

        if (run_vocabulary_is_control(vocabulary, id))
            continue;
        n = unescape(tokenizer, text, length, world->texts + at);
        if (run_prefix_trie_add(&world->tokens, world->texts + at, (uint32_t)n, (int32_t)id) < 0)
            return run_fail_memory(failure);
        at += n;
    }
    run_prefix_trie_sort(&world->tokens);
    return 0;
}

static void close_world(void *state)
{
    struct world *world = state;

    run_prefix_trie_free(&world->tokens);
    free(world->texts);
    free(world);
}

static int encode_world(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                        bool is_first, struct run_ids *ids)
{
    const struct world *world = tokenizer->state;
    int code = 0;

    (void)is_first;
    for (size_t at = 0; code == 0 && at < length;) {
        const struct run_prefix *token =
            run_prefix_trie_longest(&world->tokens, text + at, length - at, NULL);
        const int32_t id = token ? token->id : tokenizer->special.unk;

        if (id >= 0)
            code = run_ids_add(ids, id);
        at += token ? token->length : 1;
    }
    return code;
}

const struct run_tokenizer_kind run_kind_rwkv = {
    .model = "rwkv",
    .open = open_world,
    .close = close_world,
    .encode = encode_world,
    .decode = unescape,
};
