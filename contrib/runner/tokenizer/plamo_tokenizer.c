/*
 * The kind "plamo2": the tokenization with the highest sum of scores, computed from the end of the
 * text, which decides between equal sums.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Scores are rounded to 1/10000; tokens with this score or a lower one are not used. */
#define SCALE         1e4
#define NO_SCORE      (-20000000)
#define UNKNOWN_SCORE (-10000000) /* of a character without a token */

struct plamo {
    struct run_prefix_trie tokens;
    int32_t bytes[256];
};

static int open_plamo(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                      struct run_failure *failure)
{
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct plamo *plamo = calloc(1, sizeof *plamo);
    int code;

    tokenizer->state = plamo;
    if (!plamo)
        return run_fail_memory(failure);
    code = run_vocabulary_read_scores(metadata, vocabulary, failure);
    if (code < 0)
        return code;
    if (!vocabulary->scores)
        return run_fail(failure, -ENOENT, "metadata: no tokenizer.ggml.scores");
    run_vocabulary_find_bytes(vocabulary, plamo->bytes);
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);
        const uint8_t type = vocabulary->types[id];

        if (!gguf_token_type_is_control(type) && type != GGUF_TOKEN_BYTE &&
            (double)vocabulary->scores[id] * SCALE > NO_SCORE &&
            run_prefix_trie_add(&plamo->tokens, text, length, (int32_t)id) < 0)
            return run_fail_memory(failure);
    }
    run_prefix_trie_sort(&plamo->tokens);
    return 0;
}

static void close_plamo(void *state)
{
    struct plamo *plamo = state;

    run_prefix_trie_free(&plamo->tokens);
    free(plamo);
}

/* The best token that begins at a byte of the text, and the sum of scores from there on. */
struct best {
    double score;
    int32_t id; /* RUN_NO_TOKEN: an unknown character */
    uint32_t n_bytes;
};

static void find_best(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                      size_t at, struct best *best)
{
    const struct plamo *plamo = tokenizer->state;
    const size_t n_character = run_character_decode(text, length, at).n_bytes;
    const struct run_prefix *token =
        run_prefix_trie_longest(&plamo->tokens, text + at, length - at, NULL);

    for (;; token = run_prefix_trie_shorter(&plamo->tokens, token)) {
        const size_t n_bytes = token ? token->length : n_character;
        const double score = best[at + n_bytes].score +
                             (token ? round((double)tokenizer->vocabulary.scores[token->id] * SCALE)
                                    : UNKNOWN_SCORE);

        if (score > best[at].score)
            best[at] = (struct best){score, token ? token->id : RUN_NO_TOKEN, (uint32_t)n_bytes};
        if (!token)
            break;
    }
}

/* Append the tokens of the bytes of an unknown character. */
static int add_unknown(const struct run_tokenizer *tokenizer, const char *text, size_t n_bytes,
                       struct run_ids *ids)
{
    const struct plamo *plamo = tokenizer->state;
    int code = 0;

    for (size_t i = 0; code == 0 && i < n_bytes; i++) {
        const int32_t byte = plamo->bytes[(unsigned char)text[i]];
        const int32_t id = byte >= 0 ? byte : tokenizer->special.unk;

        if (id >= 0)
            code = run_ids_add(ids, id);
    }
    return code;
}

static int encode_plamo(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                        bool is_first, struct run_ids *ids)
{
    struct best *best = calloc(length + 1, sizeof *best);
    int code = 0;

    (void)is_first;
    if (!best)
        return -ENOMEM;
    /* Inside a character, nothing begins: its sum stays infinitely low. */
    for (size_t at = 0; at < length; at++)
        best[at].score = -INFINITY;
    for (size_t at = 0; at < length; at += run_character_decode(text, length, at).n_bytes)
        best[at].n_bytes = 1;
    for (size_t at = length; at-- > 0;)
        if (best[at].n_bytes > 0)
            find_best(tokenizer, text, length, at, best);
    for (size_t at = 0; code == 0 && at < length; at += best[at].n_bytes)
        code = best[at].id < 0 ? add_unknown(tokenizer, text + at, best[at].n_bytes, ids)
                               : run_ids_add(ids, best[at].id);
    free(best);
    return code;
}

const struct run_tokenizer_kind run_kind_plamo2 = {
    .model = "plamo2",
    .open = open_plamo,
    .close = close_plamo,
    .encode = encode_plamo,
};
