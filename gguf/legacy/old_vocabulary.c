#include "gguf/legacy/old_reading.h"
#include "gguf/models/tokens.h"
#include "gguf/support/arrays.h"

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

/* ---- a token as GGUF writes it ---- */

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

static int put_llama_token(struct gguf_buffer *out, struct gguf_string token, uint64_t id)
{
    static const char *const first[FIRST_BYTE_TOKEN] = {"<unk>", "<s>", "</s>"};
    int result = 0;
    char name[8];

    if (id < FIRST_BYTE_TOKEN)
        return gguf_buffer_add_string(out, first[id]);
    if (is_byte_token(token, id)) {
        snprintf(name, sizeof name, GGUF_BYTE_TOKEN_FORMAT, (unsigned)(unsigned char)token.data[0]);
        return gguf_buffer_add_string(out, name);
    }
    for (uint64_t i = 0; result == 0 && i < token.length_bytes; i++)
        result = token.data[i] == ' ' ? gguf_buffer_add(out, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES)
                                      : gguf_buffer_add(out, token.data + i, 1);
    return result;
}

static int put_gpt2_token(struct gguf_buffer *out, struct gguf_string token)
{
    int result = 0;

    for (uint64_t i = 0; result == 0 && i < token.length_bytes; i++) {
        char character[2];

        result = gguf_buffer_add(out, character,
                                 gguf_alphabet_put((unsigned char)token.data[i], character));
    }
    return result;
}

/* ---- the keys ---- */

/* Append a token with its length. `types` gets its type, unless it is NULL. */
static int put_token(struct gguf_buffer *out, struct gguf_string token, uint64_t id,
                     uint32_t *types)
{
    const size_t start = out->length;
    uint64_t n_bytes = 0;
    int result = gguf_buffer_add(out, &n_bytes, sizeof n_bytes);

    if (result == 0)
        result = types ? put_llama_token(out, token, id) : put_gpt2_token(out, token);
    if (result < 0)
        return result;
    n_bytes = out->length - start - sizeof n_bytes;
    memcpy(out->bytes + start, &n_bytes, sizeof n_bytes);
    if (types)
        types[id] = (uint32_t)llama_type(token, id);
    /* Scores and types are added to this. */
    return out->length + 2 * sizeof *types * id > GGUF_MAX_VOCABULARY_BYTES ? -E2BIG : 0;
}

/* Make a list of numbers for each token, unless the vocabulary has none. */
static uint32_t *make_numbers(struct gguf_key_adder *adder, uint64_t n_tokens, bool has_them)
{
    uint32_t *numbers =
        has_them ? gguf_model_alloc(adder->model, n_tokens * sizeof *numbers) : NULL;

    if (has_them && !numbers)
        adder->result = -ENOMEM;
    return numbers;
}

int gguf_old_vocabulary_add_keys(struct gguf_model *model, const char *tokenizer,
                                 const struct gguf_old_vocabulary *vocabulary,
                                 struct gguf_report *report)
{
    const uint64_t n = vocabulary->n_tokens;
    struct gguf_key_adder adder = {.model = model};
    struct gguf_cursor cursor = {.data = vocabulary->bytes,
                                 .size_bytes = vocabulary->size_bytes,
                                 .encoding = vocabulary->encoding};
    uint32_t *scores = make_numbers(&adder, n, vocabulary->has_scores);
    uint32_t *types = make_numbers(&adder, n, strcmp(tokenizer, "llama") == 0);
    struct gguf_value tokens = gguf_value_of_numbers(GGUF_STRING, NULL, n);
    struct gguf_buffer texts = {0};

    for (uint64_t i = 0; adder.result == 0 && i < n; i++) {
        struct gguf_string token = {0};

        /* The same memory was read before. */
        (void)gguf_cursor_string(&cursor, &token);
        if (scores)
            (void)gguf_cursor_u32(&cursor, &scores[i]);
        adder.result = put_token(&texts, token, i, types);
    }
    tokens.array.size_bytes = texts.length;
    tokens.array.data = gguf_model_keep(model, texts.bytes);
    if (adder.result == 0 && !tokens.array.data)
        adder.result = -ENOMEM;
    gguf_add_text(&adder, "tokenizer.ggml.model", tokenizer);
    gguf_add_value(&adder, "tokenizer.ggml.tokens", tokens);
    if (scores)
        gguf_add_value(&adder, "tokenizer.ggml.scores",
                       gguf_value_of_numbers(GGUF_FLOAT32, scores, n));
    if (types)
        gguf_add_value(&adder, "tokenizer.ggml.token_type",
                       gguf_value_of_numbers(GGUF_INT32, types, n));
    if (adder.result == -E2BIG)
        return gguf_error(report, GGUF_RULE_METADATA_LIMIT, -E2BIG,
                          gguf_at(vocabulary->file_offset),
                          "vocabulary: its %" PRIu64 " tokens take over %u bytes, the limit", n,
                          GGUF_MAX_VOCABULARY_BYTES);
    if (adder.result < 0)
        return gguf_system_error(report, adder.result,
                                 gguf_at_part("vocabulary", vocabulary->file_offset));
    return 0;
}
