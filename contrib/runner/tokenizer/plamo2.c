/*
 * The kind "plamo2": the tokenization with the highest sum of scores, found by dynamic programming
 * from the end of the text. Characters without a token are written as bytes.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Scores are multiples of 1/10000; this value and lower ones mean that there is no score. */
#define SCALE         1e4
#define NO_SCORE      (-20000000)
#define UNKNOWN_SCORE (-10000000)

struct plamo2 {
    struct run_prefixes tokens;
    int32_t bytes[256];
};

static int open_plamo2(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                       struct run_failure *failure)
{
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct plamo2 *state = calloc(1, sizeof *state);
    int code;

    tokenizer->state = state;
    if (!state)
        return run_fail_memory(failure);
    code = run_vocabulary_read_scores(metadata, vocabulary, failure);
    if (code < 0)
        return code;
    if (!vocabulary->scores)
        return run_fail(failure, -ENOENT, "metadata: no tokenizer.ggml.scores");
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if (!run_vocabulary_is_control(vocabulary, id) &&
            vocabulary->types[id] != GGUF_TOKEN_BYTE && vocabulary->scores[id] * SCALE > NO_SCORE &&
            run_prefixes_add(&state->tokens, text, length, (int32_t)id) < 0)
            return run_fail_memory(failure);
    }
    run_prefixes_sort(&state->tokens);
    run_vocabulary_find_bytes(vocabulary, state->bytes);
    return 0;
}

static void close_plamo2(void *state)
{
    struct plamo2 *plamo2 = state;

    run_prefixes_free(&plamo2->tokens);
    free(plamo2);
}

struct way {
    double cost; /* of the text from here to the end */
    int32_t id;  /* of the token that begins here, or RUN_NO_TOKEN */
    uint32_t n_bytes;
};

static void find_way(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     size_t at, struct way *ways)
{
    const struct plamo2 *state = tokenizer->state;
    const size_t n_character = run_character_decode(text, length, at).n_bytes;
    const double unknown = ways[at + n_character].cost - UNKNOWN_SCORE;
    struct way best = {INFINITY, RUN_NO_TOKEN, (uint32_t)n_character};
    struct run_prefix_walk walk;

    run_prefix_walk_begin(&state->tokens, &walk);
    for (size_t i = at; i < length; i++) {
        double cost;
        int32_t id;

        if (!run_prefix_walk_step(&state->tokens, &walk, (unsigned char)text[i]))
            break;
        id = run_prefix_walk_id(&state->tokens, &walk);
        if (id < 0)
            continue;
        cost = ways[i + 1].cost - round((double)tokenizer->vocabulary.scores[id] * SCALE);
        /* At equal cost, the longest token wins. */
        if (cost <= best.cost)
            best = (struct way){cost, id, walk.depth};
    }
    if (unknown < best.cost)
        best = (struct way){unknown, RUN_NO_TOKEN, (uint32_t)n_character};
    ways[at] = best;
}

static int add_way(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                   const struct way *ways, struct run_ids *ids)
{
    const struct plamo2 *state = tokenizer->state;
    int code = 0;

    for (size_t at = 0; code == 0 && at < length; at += ways[at].n_bytes) {
        if (ways[at].id >= 0) {
            code = run_ids_add(ids, ways[at].id);
            continue;
        }
        for (size_t i = 0; code == 0 && i < ways[at].n_bytes; i++) {
            const int32_t id = state->bytes[(unsigned char)text[at + i]];

            if (id >= 0)
                code = run_ids_add(ids, id);
            else if (tokenizer->special.unk >= 0)
                code = run_ids_add(ids, tokenizer->special.unk);
        }
    }
    return code;
}

/* Mark the places where characters begin. */
static void find_characters(const char *text, size_t length, struct way *ways)
{
    for (size_t at = 0; at < length; at += run_character_decode(text, length, at).n_bytes)
        ways[at].n_bytes = 1;
}

static int encode_plamo2(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         bool is_first, struct run_ids *ids)
{
    struct way *ways = calloc(length + 1, sizeof *ways);
    int code;

    (void)is_first;
    if (!ways)
        return -ENOMEM;
    find_characters(text, length, ways);
    for (size_t at = length; at-- > 0;) {
        if (ways[at].n_bytes == 0)
            ways[at].cost = INFINITY; /* inside a character: no token ends here */
        else
            find_way(tokenizer, text, length, at, ways);
    }
    code = add_way(tokenizer, text, length, ways, ids);
    free(ways);
    return code;
}

const struct run_tokenizer_kind run_kind_plamo2 = {
    .model = "plamo2",
    .open = open_plamo2,
    .close = close_plamo2,
    .encode = encode_plamo2,
};
