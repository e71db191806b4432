/*
 * The kind "plamo2": the tokenization with the highest sum of scores, computed from the end of the
 * text, which decides between equal sums.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Scores are rounded to 1/10000. */
#define SCALE         1e4
#define UNKNOWN_SCORE (-10000000) /* of a character without a token */

int run_plamo_open(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                   struct run_failure *failure)
{
    const int code = run_vocabulary_read_scores(metadata, &tokenizer->vocabulary, failure);

    if (code < 0)
        return code;
    if (!tokenizer->vocabulary.scores)
        return run_fail(failure, -ENOENT, "metadata: no tokenizer.ggml.scores");
    run_vocabulary_find_bytes(&tokenizer->vocabulary, tokenizer->bytes);
    return 0;
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
    const size_t n_character = run_character_decode(text, length, at).n_bytes;
    const struct run_prefix *token =
        run_prefix_trie_longest(&tokenizer->tokens, text + at, length - at, NULL);

    for (;; token = run_prefix_trie_shorter(&tokenizer->tokens, token)) {
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
static void add_unknown(const struct run_tokenizer *tokenizer, const char *text, size_t n_bytes,
                        struct run_ids *ids)
{
    for (size_t i = 0; i < n_bytes; i++) {
        const int32_t byte = tokenizer->bytes[(unsigned char)text[i]];
        const int32_t id = byte >= 0 ? byte : tokenizer->special.unk;

        if (id >= 0)
            run_ids_add(ids, id);
    }
}

int run_plamo_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     struct run_ids *ids)
{
    struct best *best = calloc(length + 1, sizeof *best);

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
    for (size_t at = 0; at < length; at += best[at].n_bytes)
        if (best[at].id < 0)
            add_unknown(tokenizer, text + at, best[at].n_bytes, ids);
        else
            run_ids_add(ids, best[at].id);
    free(best);
    return 0;
}
