#include "gguf/legacy/old_reading.h"
#include "gguf/models/tokens.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The ids that were built into llama.cpp: <unk>, <s>, </s>, then the 256 bytes. */
#define FIRST_BYTE_TOKEN 3u
#define LAST_BYTE_TOKEN  (FIRST_BYTE_TOKEN + 255u)

int gguf_old_vocabulary_read(struct gguf_cursor *cursor, uint64_t n_tokens, bool has_scores,
                             struct gguf_old_vocabulary *vocabulary)
{
    const uint64_t smallest_bytes = sizeof(uint32_t) + (has_scores ? sizeof(float) : 0);
    char place[64];

    if (n_tokens > gguf_cursor_left(cursor) / smallest_bytes)
        return gguf_error(
            cursor->report, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, gguf_at(cursor->offset),
            "vocabulary: the header says that there are %" PRIu64 " tokens, but the "
            "%" PRIu64 " bytes that are left of the file hold at most %" PRIu64
            " (unfinished download?)",
            n_tokens, gguf_cursor_left(cursor), gguf_cursor_left(cursor) / smallest_bytes);
    *vocabulary = (struct gguf_old_vocabulary){.bytes = gguf_cursor_take(cursor, 0),
                                               .file_offset = cursor->offset,
                                               .encoding = cursor->encoding,
                                               .n_tokens = n_tokens,
                                               .has_scores = has_scores};
    for (uint64_t i = 0; i < n_tokens; i++) {
        struct gguf_string token;

        const bool has_text = gguf_cursor_string(cursor, &token) == 0;

        if (has_text && (!has_scores || gguf_cursor_skip(cursor, sizeof(float)) == 0))
            continue;
        snprintf(place, sizeof place, "token %" PRIu64 " of %" PRIu64, i, n_tokens);
        cursor->place = gguf_at_part(place, 0);
        return gguf_cursor_fail(cursor, has_text ? "its score" : "its text");
    }
    vocabulary->size_bytes = cursor->offset - vocabulary->file_offset;
    return 0;
}

/* ---- a token as GGUF writes it: each function returns the length; `out` may be NULL ---- */

static uint64_t put_bytes(uint8_t *out, const char *bytes, uint64_t length)
{
    if (out && length > 0)
        memcpy(out, bytes, length);
    return length;
}

static bool is_byte_token(struct gguf_string token, uint64_t id)
{
    return id >= FIRST_BYTE_TOKEN && id <= LAST_BYTE_TOKEN && token.length_bytes == 1;
}

static bool is_byte_name(struct gguf_string token, uint64_t id)
{
    char name[8];

    if (id < FIRST_BYTE_TOKEN || id > LAST_BYTE_TOKEN)
        return false;
    snprintf(name, sizeof name, GGUF_BYTE_TOKEN_FORMAT, (unsigned)(id - FIRST_BYTE_TOKEN));
    return gguf_string_equals(token, name);
}

static enum gguf_token_type llama_type(struct gguf_string token, uint64_t id)
{
    if (id == 0)
        return GGUF_TOKEN_UNKNOWN;
    if (id < FIRST_BYTE_TOKEN || token.length_bytes == 0)
        return GGUF_TOKEN_CONTROL;
    return is_byte_token(token, id) || is_byte_name(token, id) ? GGUF_TOKEN_BYTE
                                                               : GGUF_TOKEN_NORMAL;
}

static uint64_t put_llama_token(uint8_t *out, struct gguf_string token, uint64_t id)
{
    static const char *const first[FIRST_BYTE_TOKEN] = {"<unk>", "<s>", "</s>"};
    uint64_t length = 0;
    char name[8];

    if (id < FIRST_BYTE_TOKEN)
        return put_bytes(out, first[id], strlen(first[id]));
    if (is_byte_token(token, id)) {
        snprintf(name, sizeof name, GGUF_BYTE_TOKEN_FORMAT, (unsigned)(unsigned char)token.data[0]);
        return put_bytes(out, name, strlen(name));
    }
    for (uint64_t i = 0; i < token.length_bytes; i++) {
        const bool is_space = token.data[i] == ' ';

        length += put_bytes(out ? out + length : NULL, is_space ? GGUF_SPACE_MARK : token.data + i,
                            is_space ? GGUF_SPACE_MARK_BYTES : 1);
    }
    return length;
}

static uint64_t put_gpt2_token(uint8_t *out, struct gguf_string token, uint64_t id)
{
    uint64_t length = 0;

    (void)id;
    for (uint64_t i = 0; i < token.length_bytes; i++) {
        char character[2];
        const size_t n = gguf_alphabet_put((unsigned char)token.data[i], character);

        length += put_bytes(out ? out + length : NULL, character, n);
    }
    return length;
}

/* ---- the keys ---- */

typedef uint64_t put_token(uint8_t *out, struct gguf_string token, uint64_t id);

static struct gguf_cursor first_token(const struct gguf_old_vocabulary *vocabulary)
{
    return (struct gguf_cursor){.data = vocabulary->bytes,
                                .size_bytes = vocabulary->size_bytes,
                                .encoding = vocabulary->encoding};
}

/* Move to the next token. This cannot fail, because the same memory was read before. */
static struct gguf_string next_token(const struct gguf_old_vocabulary *vocabulary,
                                     struct gguf_cursor *cursor, uint32_t *score_bits)
{
    struct gguf_string token = {0};
    int result = gguf_cursor_string(cursor, &token);

    if (result == 0 && vocabulary->has_scores)
        result = gguf_cursor_u32(cursor, score_bits);
    assert(result == 0);
    (void)result;
    return token;
}

static int add_tokens(struct gguf_key_adder *adder, const struct gguf_old_vocabulary *vocabulary,
                      put_token *put)
{
    struct gguf_cursor cursor = first_token(vocabulary);
    struct gguf_value tokens = gguf_value_of_numbers(GGUF_STRING, NULL, vocabulary->n_tokens);
    uint64_t size_bytes = 0;
    uint32_t score_bits;
    uint8_t *at;

    for (uint64_t i = 0; i < vocabulary->n_tokens; i++) {
        size_bytes += sizeof(uint64_t) + put(NULL, next_token(vocabulary, &cursor, &score_bits), i);
        /* Scores and types are added to this. */
        if (size_bytes + 2 * sizeof(uint32_t) * i > GGUF_MAX_VOCABULARY_BYTES)
            return -E2BIG;
    }
    at = gguf_model_alloc(adder->model, size_bytes);
    if (!at)
        return -ENOMEM;
    tokens.array.data = at;
    tokens.array.size_bytes = size_bytes;
    cursor = first_token(vocabulary);
    for (uint64_t i = 0; i < vocabulary->n_tokens; i++) {
        const uint64_t n_bytes =
            put(at + sizeof n_bytes, next_token(vocabulary, &cursor, &score_bits), i);

        memcpy(at, &n_bytes, sizeof n_bytes);
        at += sizeof n_bytes + n_bytes;
    }
    gguf_add_value(adder, "tokenizer.ggml.tokens", tokens);
    return adder->result;
}

/* Add the tokens' scores, or with `types` their types. */
static int add_numbers(struct gguf_key_adder *adder, const struct gguf_old_vocabulary *vocabulary,
                       bool types)
{
    struct gguf_cursor cursor = first_token(vocabulary);
    uint32_t *numbers = gguf_model_alloc(adder->model, vocabulary->n_tokens * sizeof *numbers);

    if (!numbers)
        return -ENOMEM;
    for (uint64_t i = 0; i < vocabulary->n_tokens; i++) {
        const struct gguf_string token = next_token(vocabulary, &cursor, &numbers[i]);

        if (types)
            numbers[i] = (uint32_t)llama_type(token, i);
    }
    gguf_add_value(
        adder, types ? "tokenizer.ggml.token_type" : "tokenizer.ggml.scores",
        gguf_value_of_numbers(types ? GGUF_INT32 : GGUF_FLOAT32, numbers, vocabulary->n_tokens));
    return adder->result;
}

int gguf_old_vocabulary_add_keys(struct gguf_model *model, const char *tokenizer,
                                 const struct gguf_old_vocabulary *vocabulary,
                                 struct gguf_report *report)
{
    const bool is_llama = strcmp(tokenizer, "llama") == 0;
    struct gguf_key_adder adder = {.model = model};
    int result;

    gguf_add_text(&adder, "tokenizer.ggml.model", tokenizer);
    result = add_tokens(&adder, vocabulary, is_llama ? put_llama_token : put_gpt2_token);
    if (result == 0 && vocabulary->has_scores)
        result = add_numbers(&adder, vocabulary, false);
    if (result == 0 && is_llama)
        result = add_numbers(&adder, vocabulary, true);
    if (result == -E2BIG)
        return gguf_error(report, GGUF_RULE_METADATA_LIMIT, result,
                          gguf_at(vocabulary->file_offset),
                          "vocabulary: its %" PRIu64 " tokens take over %u bytes, the limit",
                          vocabulary->n_tokens, GGUF_MAX_VOCABULARY_BYTES);
    if (result < 0)
        return gguf_system_error(report, result,
                                 gguf_at_part("vocabulary", vocabulary->file_offset));
    return 0;
}
