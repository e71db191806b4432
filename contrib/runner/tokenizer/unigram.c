/*
 * The kinds "t5", SentencePiece's unigram model, and "plamo2": the tokenization with the highest
 * sum of scores. "t5" is computed from the start of the text and "plamo2" from its end, which
 * decides between equal sums.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/charsmap.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#define KEY "tokenizer.ggml."

/* t5: an unknown character scores this much less than the worst token. */
#define UNKNOWN_PENALTY 10.0

/* plamo2: scores are rounded to 1/10000; tokens with this score or a lower one are not used. */
#define SCALE         1e4
#define NO_SCORE      (-20000000)
#define UNKNOWN_SCORE (-10000000)

struct unigram {
    bool is_plamo2;
    struct run_prefix_trie tokens;
    struct run_charsmap map; /* t5 */
    double unknown_score;    /* of a character */
    bool is_space_merged;    /* t5: runs of spaces become one */
    bool has_bytes;          /* unknown characters are written as bytes */
    int32_t bytes[256];
};

static double token_score(const struct run_tokenizer *tokenizer, int32_t id)
{
    const struct unigram *state = tokenizer->state;
    const double score = (double)tokenizer->vocabulary.scores[id];

    if (state->is_plamo2)
        return round(score * SCALE);
    return tokenizer->vocabulary.types[id] == GGUF_TOKEN_USER_DEFINED ? 0.0 : score;
}

static bool is_text_token(const struct run_tokenizer *tokenizer, uint32_t id)
{
    const struct unigram *state = tokenizer->state;
    const uint8_t type = tokenizer->vocabulary.types[id];

    if (state->is_plamo2)
        return !gguf_token_type_is_control(type) && type != GGUF_TOKEN_BYTE &&
               (double)tokenizer->vocabulary.scores[id] * SCALE > NO_SCORE;
    return type == GGUF_TOKEN_NORMAL || type == GGUF_TOKEN_USER_DEFINED ||
           type == GGUF_TOKEN_UNUSED;
}

static int collect_tokens(struct run_tokenizer *tokenizer, struct run_failure *failure)
{
    const struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct unigram *state = tokenizer->state;
    float lowest = FLT_MAX;

    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if (vocabulary->types[id] == GGUF_TOKEN_NORMAL && vocabulary->scores[id] < lowest)
            lowest = vocabulary->scores[id];
        if (is_text_token(tokenizer, id) &&
            run_prefix_trie_add(&state->tokens, text, length, (int32_t)id) < 0)
            return run_fail_memory(failure);
    }
    run_prefix_trie_sort(&state->tokens);
    if (state->is_plamo2)
        state->unknown_score = UNKNOWN_SCORE;
    else
        state->unknown_score = (lowest < FLT_MAX ? (double)lowest : 0.0) - UNKNOWN_PENALTY;
    return 0;
}

static int open_unigram(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                        struct run_failure *failure)
{
    const bool is_plamo2 = tokenizer->kind == &run_kind_plamo2;
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct unigram *state = calloc(1, sizeof *state);
    int code;

    tokenizer->state = state;
    if (!state)
        return run_fail_memory(failure);
    state->is_plamo2 = is_plamo2;
    code = run_vocabulary_read_scores(metadata, vocabulary, failure);
    if (code < 0)
        return code;
    if (!vocabulary->scores)
        return run_fail(failure, -ENOENT, "metadata: no " KEY "scores");
    run_vocabulary_find_bytes(vocabulary, state->bytes);
    state->has_bytes = true;
    for (unsigned byte = 0; byte < 256 && !is_plamo2; byte++)
        state->has_bytes &=
            state->bytes[byte] >= 0 && vocabulary->types[state->bytes[byte]] == GGUF_TOKEN_BYTE;
    code = collect_tokens(tokenizer, failure);
    if (code < 0 || is_plamo2)
        return code;
    state->is_space_merged = run_metadata_is_true(metadata, KEY "remove_extra_whitespaces", false);
    return run_charsmap_read(metadata, KEY "precompiled_charsmap", &state->map, failure);
}

static void close_unigram(void *state)
{
    struct unigram *unigram = state;

    run_prefix_trie_free(&unigram->tokens);
    run_charsmap_free(&unigram->map);
    free(unigram);
}

/* ---- normalizing the text ---- */

struct normalizing {
    const struct unigram *unigram;
    struct gguf_buffer text;
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
                code = gguf_buffer_add(&normalizing->text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
            continue;
        }
        if (!normalizing->is_behind_other &&
            (normalizing->is_space_due || normalizing->unigram->is_space_merged))
            code = gguf_buffer_add(&normalizing->text, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
        normalizing->is_space_due = false;
        normalizing->is_behind_other = true;
        if (code == 0)
            code = gguf_buffer_add(&normalizing->text, bytes + i, 1);
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

        if (run_charsmap_find(&normalizing->unigram->map, text + at, length - at, &bytes, &n_bytes,
                              &n_taken)) {
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

/*
 * The best token that ends at a byte of the text (t5), and the sum of scores up to its end; or the
 * best that begins there (plamo2), and the sum of scores from its beginning on.
 */
struct best {
    double score;
    int32_t id; /* RUN_NO_TOKEN: an unknown character */
    uint32_t n_bytes;
};

static void find_best_at(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         size_t at, struct best *best)
{
    const struct unigram *state = tokenizer->state;
    const size_t n_character = run_character_decode(text, length, at).n_bytes;
    const struct run_prefix *token =
        run_prefix_trie_longest(&state->tokens, text + at, length - at, NULL);
    bool is_known = false;

    for (;; token = run_prefix_trie_shorter(&state->tokens, token)) {
        const size_t n_bytes = token ? token->length : n_character;
        struct best *to = &best[state->is_plamo2 ? at : at + n_bytes];
        const double before = best[state->is_plamo2 ? at + n_bytes : at].score;
        double score;

        if (!token && is_known && !state->is_plamo2)
            break;
        score = before + (token ? token_score(tokenizer, token->id) : state->unknown_score);
        if (score > to->score)
            *to = (struct best){score, token ? token->id : RUN_NO_TOKEN, (uint32_t)n_bytes};
        if (!token)
            break;
        is_known |= n_bytes == n_character;
    }
}

/* Index the tokens of the best path by their first byte instead of their end. */
static void turn_round(struct best *best, size_t length)
{
    struct best token = best[length];

    for (size_t at = length; at > 0;) {
        struct best before;

        at -= token.n_bytes;
        before = best[at];
        best[at] = token;
        token = before;
    }
}

/* Fill in best[0] to best[length]: the tokens by the bytes at which they begin. */
static void find_best(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                      struct best *best)
{
    const struct unigram *state = tokenizer->state;

    for (size_t at = 0; at <= length; at++)
        best[at].score = -INFINITY;
    best[state->is_plamo2 ? length : 0].score = 0;
    if (!state->is_plamo2) {
        for (size_t at = 0; at < length; at += run_character_decode(text, length, at).n_bytes)
            find_best_at(tokenizer, text, length, at, best);
        turn_round(best, length);
        return;
    }
    /* Inside a character, nothing begins: its sum stays infinitely low. */
    for (size_t at = 0; at < length; at += run_character_decode(text, length, at).n_bytes)
        best[at].n_bytes = 1;
    for (size_t at = length; at-- > 0;)
        if (best[at].n_bytes > 0)
            find_best_at(tokenizer, text, length, at, best);
}

/*
 * Append the tokens of an unknown character. If a t5 vocabulary has no bytes, it is one unknown
 * token, unless the character before is unknown as well.
 */
static int add_unknown(const struct run_tokenizer *tokenizer, const char *text, size_t n_bytes,
                       bool is_behind_unknown, struct run_ids *ids)
{
    const struct unigram *state = tokenizer->state;
    int code = 0;

    if (!state->has_bytes)
        return is_behind_unknown || tokenizer->special.unk < 0
                   ? 0
                   : run_ids_add(ids, tokenizer->special.unk);
    for (size_t i = 0; code == 0 && i < n_bytes; i++) {
        const int32_t byte = state->bytes[(unsigned char)text[i]];
        const int32_t id = byte >= 0 ? byte : tokenizer->special.unk;

        if (id >= 0)
            code = run_ids_add(ids, id);
    }
    return code;
}

static int add_best(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                    const struct best *best, struct run_ids *ids)
{
    bool is_unknown = false;
    int code = 0;

    for (size_t at = 0; code == 0 && at < length; at += best[at].n_bytes) {
        code = best[at].id < 0
                   ? add_unknown(tokenizer, text + at, best[at].n_bytes, is_unknown, ids)
                   : run_ids_add(ids, best[at].id);
        is_unknown = best[at].id < 0;
    }
    return code;
}

static int encode_normalized(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                             bool is_first, struct run_ids *ids)
{
    struct best *best = calloc(length + 1, sizeof *best);
    int code;

    (void)is_first;
    if (!best)
        return -ENOMEM;
    find_best(tokenizer, text, length, best);
    code = add_best(tokenizer, text, length, best, ids);
    free(best);
    return code;
}

static int encode_t5(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     bool is_first, struct run_ids *ids)
{
    struct normalizing normalizing = {.unigram = tokenizer->state,
                                      .is_space_due = tokenizer->is_space_added};
    int code = normalize(&normalizing, text, length);

    if (code == 0)
        code = encode_normalized(tokenizer, normalizing.text.bytes, normalizing.text.length,
                                 is_first, ids);
    free(normalizing.text.bytes);
    return code;
}

const struct run_tokenizer_kind run_kind_t5 = {
    .model = "t5",
    .open = open_unigram,
    .close = close_unigram,
    .encode = encode_t5,
    .decode = run_decode_space_marks,
};

const struct run_tokenizer_kind run_kind_plamo2 = {
    .model = "plamo2",
    .open = open_unigram,
    .close = close_unigram,
    .encode = encode_normalized,
};
