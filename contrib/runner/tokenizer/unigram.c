/*
 * The kind "t5": SentencePiece's unigram model. It takes the tokenization with the highest sum of
 * scores.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/characters_map.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

/* An unknown character scores this much less than the worst token. */
#define UNKNOWN_PENALTY 10.0

struct unigram {
    struct run_prefixes tokens;
    struct run_characters_map map;
    double unknown_score;
    bool is_space_merged; /* runs of spaces become one */
    bool has_bytes;       /* unknown characters are written as bytes */
    int32_t bytes[256];
};

static int open_unigram(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                        struct run_failure *failure)
{
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct unigram *state = calloc(1, sizeof *state);
    float lowest = FLT_MAX;
    int code;

    tokenizer->state = state;
    if (!state)
        return run_fail_memory(failure);
    code = run_vocabulary_read_scores(metadata, vocabulary, failure);
    if (code < 0)
        return code;
    if (!vocabulary->scores)
        return run_fail(failure, -ENOENT, "metadata: no " KEY "scores");
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        const uint8_t type = vocabulary->types[id];
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if (type == GGUF_TOKEN_NORMAL && vocabulary->scores[id] < lowest)
            lowest = vocabulary->scores[id];
        if (type != GGUF_TOKEN_NORMAL && type != GGUF_TOKEN_USER_DEFINED &&
            type != GGUF_TOKEN_UNUSED)
            continue;
        if (run_prefixes_add(&state->tokens, text, length, (int32_t)id) < 0)
            return run_fail_memory(failure);
    }
    run_prefixes_sort(&state->tokens);
    state->unknown_score = (lowest < FLT_MAX ? lowest : 0.0) - UNKNOWN_PENALTY;
    state->is_space_merged = run_metadata_is_true(metadata, KEY "remove_extra_whitespaces");
    run_vocabulary_find_bytes(vocabulary, state->bytes);
    state->has_bytes = true;
    for (unsigned byte = 0; byte < 256; byte++)
        state->has_bytes &=
            state->bytes[byte] >= 0 && vocabulary->types[state->bytes[byte]] == GGUF_TOKEN_BYTE;
    return run_characters_map_read(metadata, KEY "precompiled_charsmap", &state->map, failure);
}

static void close_unigram(void *state)
{
    struct unigram *unigram = state;

    run_prefixes_free(&unigram->tokens);
    run_characters_map_free(&unigram->map);
    free(unigram);
}

/* ---- normalizing the text ---- */

struct normalizing {
    const struct unigram *unigram;
    struct run_text text;
    bool is_space_due;    /* before the next character that is not a space */
    bool is_behind_other; /* some character other than a space has been written */
};

static int add_normal(struct normalizing *normalizing, const char *bytes, size_t length)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < length; i++) {
        if (bytes[i] == ' ') {
            normalizing->is_behind_other = false;
            if (!normalizing->unigram->is_space_merged)
                code = run_text_add(&normalizing->text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
            continue;
        }
        if (!normalizing->is_behind_other &&
            (normalizing->is_space_due || normalizing->unigram->is_space_merged))
            code = run_text_add(&normalizing->text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
        normalizing->is_space_due = false;
        normalizing->is_behind_other = true;
        if (code == 0)
            code = run_text_add(&normalizing->text, bytes + i, 1);
    }
    return code;
}

static int normalize(struct normalizing *normalizing, const char *text, size_t length)
{
    int code = 0;

    for (size_t at = 0; code == 0 && at < length;) {
        const struct run_character character = run_character_decode(text, length, at);
        const char *bytes = text + at;
        size_t n_bytes = character.n_bytes, n_taken;

        if (run_characters_map_find(&normalizing->unigram->map, text + at, length - at, &bytes,
                                    &n_bytes, &n_taken)) {
            code = add_normal(normalizing, bytes, n_bytes);
            at += n_taken;
            continue;
        }
        /* A byte that is not UTF-8 becomes U+FFFD. */
        code = character.code == RUN_REPLACEMENT ? add_normal(normalizing, "\xef\xbf\xbd", 3)
                                                 : add_normal(normalizing, text + at, n_bytes);
        at += character.n_bytes;
    }
    return code;
}

/* ---- the best tokenization ---- */

struct best {
    double score; /* of the text up to here */
    int32_t id;   /* of the token that ends here */
    uint32_t n_bytes;
};

static void offer(struct best *best, double score, int32_t id, size_t n_bytes)
{
    if (score > best->score)
        *best = (struct best){score, id, (uint32_t)n_bytes};
}

/* Fill in best[1] to best[length]. */
static void find_best(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                      struct best *best)
{
    const struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    const struct unigram *state = tokenizer->state;

    for (size_t at = 0; at < length;) {
        const size_t n_character = run_character_decode(text, length, at).n_bytes;
        struct run_prefix_walk walk;
        bool is_known = false;

        run_prefix_walk_begin(&state->tokens, &walk);
        for (size_t i = at; i < length; i++) {
            int32_t id;

            if (!run_prefix_walk_step(&state->tokens, &walk, (unsigned char)text[i]))
                break;
            id = run_prefix_walk_id(&state->tokens, &walk);
            if (id < 0)
                continue;
            is_known |= walk.depth == n_character;
            offer(&best[i + 1],
                  best[at].score + (vocabulary->types[id] == GGUF_TOKEN_USER_DEFINED
                                        ? 0.0
                                        : (double)vocabulary->scores[id]),
                  id, walk.depth);
        }
        if (!is_known)
            offer(&best[at + n_character], best[at].score + state->unknown_score, RUN_NO_TOKEN,
                  n_character);
        at += n_character;
    }
}

/*
 * Append the tokens of the bytes before `end`, last first. If the vocabulary has no bytes, append
 * one unknown token for the whole run; `is_behind_unknown` says that it is there already.
 */
static int add_unknown(const struct run_tokenizer *tokenizer, const char *text, size_t end,
                       size_t n_bytes, bool is_behind_unknown, struct run_ids *ids)
{
    const struct unigram *state = tokenizer->state;
    int code = 0;

    if (!state->has_bytes)
        return is_behind_unknown || tokenizer->special.unk < 0
                   ? 0
                   : run_ids_add(ids, tokenizer->special.unk);
    for (size_t i = 1; code == 0 && i <= n_bytes; i++)
        code = run_ids_add(ids, state->bytes[(unsigned char)text[end - i]]);
    return code;
}

static int add_best(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                    const struct best *best, struct run_ids *ids)
{
    const size_t first = ids->n;
    bool is_unknown = false;
    int code = 0;

    for (size_t at = length; code == 0 && at > 0; at -= best[at].n_bytes) {
        const bool was_unknown = is_unknown;

        is_unknown = best[at].id < 0;
        code = is_unknown ? add_unknown(tokenizer, text, at, best[at].n_bytes, was_unknown, ids)
                          : run_ids_add(ids, best[at].id);
    }
    for (size_t i = first, j = ids->n; i + 1 < j; i++) {
        const int32_t id = ids->list[i];

        ids->list[i] = ids->list[--j];
        ids->list[j] = id;
    }
    return code;
}

static int encode_unigram(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                          bool is_first, struct run_ids *ids)
{
    struct normalizing normalizing = {.unigram = tokenizer->state,
                                      .is_space_due = tokenizer->is_space_added};
    int code = normalize(&normalizing, text, length);
    const size_t n = normalizing.text.n;
    struct best *best = code == 0 ? calloc(n + 1, sizeof *best) : NULL;

    (void)is_first;
    if (!best) {
        code = -ENOMEM;
    } else {
        for (size_t i = 1; i <= n; i++)
            best[i].score = -DBL_MAX;
        find_best(tokenizer, normalizing.text.bytes, n, best);
        code = add_best(tokenizer, normalizing.text.bytes, n, best, ids);
    }
    free(best);
    free(normalizing.text.bytes);
    return code;
}

const struct run_tokenizer_kind run_kind_t5 = {
    .model = "t5",
    .open = open_unigram,
    .close = close_unigram,
    .encode = encode_unigram,
    .decode = run_decode_space_marks,
};
