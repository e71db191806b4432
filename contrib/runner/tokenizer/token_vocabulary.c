#include "contrib/runner/tokenizer/token_vocabulary.h"

#include "contrib/runner/tokenizer/token_ids.h"
#include "gguf/models/token_texts.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

/* Bounds the time per byte of text. The longest tokens in published models have 512 bytes. */
#define MAX_TOKEN_BYTES ((size_t)1 << 16)

static int add_text(struct run_vocabulary *vocabulary, const struct run_json_token *token,
                    size_t capacities[2], struct run_failure *failure)
{
    const uint32_t start = vocabulary->n > 0 ? vocabulary->starts[vocabulary->n] : 0;
    const size_t end = start + token->length;

    if (token->kind != RUN_JSON_STRING)
        return run_fail(failure, -EINVAL,
                        "metadata: " KEY "tokens: element %" PRIu32 " is not a string",
                        vocabulary->n);
    if (token->length > MAX_TOKEN_BYTES)
        return run_fail(failure, -E2BIG,
                        "metadata: " KEY "tokens: element %" PRIu32 " has %zu bytes, more than %zu",
                        vocabulary->n, token->length, MAX_TOKEN_BYTES);
    if (vocabulary->n == GGUF_MAX_TOKENS || end > GGUF_MAX_TOKENS_BYTES)
        return run_fail(failure, -E2BIG, "metadata: " KEY "tokens: more than %u tokens or %u bytes",
                        GGUF_MAX_TOKENS, GGUF_MAX_TOKENS_BYTES);
    if (run_reserve(&vocabulary->texts, &capacities[0], end + 1, 1) < 0 ||
        run_reserve(&vocabulary->starts, &capacities[1], vocabulary->n + 2,
                    sizeof *vocabulary->starts) < 0)
        return run_fail_memory(failure);
    memcpy(vocabulary->texts + start, token->text, token->length);
    vocabulary->starts[vocabulary->n] = start;
    vocabulary->starts[++vocabulary->n] = (uint32_t)end;
    if (token->length > vocabulary->longest_bytes)
        vocabulary->longest_bytes = (uint32_t)token->length;
    return 0;
}

static int read_texts(struct run_json *tokens, struct run_vocabulary *vocabulary,
                      struct run_failure *failure)
{
    size_t capacities[2] = {0};
    struct run_json_token token;
    int code;

    while ((code = run_json_element(tokens, &token, failure)) > 0) {
        code = add_text(vocabulary, &token, capacities, failure);
        if (code < 0)
            return code;
    }
    if (code < 0)
        return code;
    if (vocabulary->n == 0)
        return run_fail(failure, -EINVAL, "metadata: " KEY "tokens: no tokens");
    vocabulary->types = malloc(vocabulary->n);
    if (!vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, vocabulary->n);
    return 0;
}

static int refuse_count(const char *name, uint32_t n, const struct run_vocabulary *vocabulary,
                        struct run_failure *failure)
{
    return run_fail(failure, -EINVAL,
                    "metadata: " KEY "%s: %" PRIu32 " values for %" PRIu32 " tokens", name, n,
                    vocabulary->n);
}

static int read_types(struct run_json *types, struct run_vocabulary *vocabulary,
                      struct run_failure *failure)
{
    struct run_json_token type;
    uint32_t n = 0;
    int code = 0;

    while (n < vocabulary->n && (code = run_json_element(types, &type, failure)) > 0) {
        if (type.kind != RUN_JSON_NUMBER)
            return run_fail(failure, -EINVAL,
                            "metadata: " KEY "token_type: element %" PRIu32 " is not a number", n);
        vocabulary->types[n++] = type.number >= 0 && type.number <= GGUF_TOKEN_BYTE
                                     ? (uint8_t)type.number
                                     : GGUF_TOKEN_UNDEFINED;
    }
    if (code >= 0 && n < vocabulary->n)
        return refuse_count("token_type", n, vocabulary, failure);
    return code < 0 ? code : 0;
}

static int read_scores(struct run_json *scores, struct run_vocabulary *vocabulary,
                       struct run_failure *failure)
{
    struct run_json_token score;
    uint32_t n = 0;
    int code = 0;

    vocabulary->scores = calloc((size_t)vocabulary->n + 1, sizeof *vocabulary->scores);
    if (!vocabulary->scores)
        return run_fail_memory(failure);
    while (n < vocabulary->n && (code = run_json_element(scores, &score, failure)) > 0) {
        /* JSON has no NaN and no infinity: the tree has null for them. */
        const float value = score.kind == RUN_JSON_NUMBER ? (float)score.number : -FLT_MAX;

        if (score.kind != RUN_JSON_NUMBER && score.kind != RUN_JSON_NULL &&
            score.kind != RUN_JSON_STRING)
            return run_fail(failure, -EINVAL,
                            "metadata: " KEY "scores: element %" PRIu32 " is not a number", n);
        vocabulary->scores[n++] = isfinite(value) ? value : -FLT_MAX;
    }
    if (code >= 0 && n < vocabulary->n)
        return refuse_count("scores", n, vocabulary, failure);
    return code < 0 ? code : 0;
}

/* ---- texts to ids ---- */

bool run_vocabulary_is_text(const struct run_vocabulary *vocabulary, uint32_t id, const char *text,
                            size_t length)
{
    uint32_t own_length;
    const char *own = run_vocabulary_text(vocabulary, id, &own_length);

    return own_length == length && memcmp(own, text, length) == 0;
}

/*
 * A slot of the hash table holds an id plus 1 and, above it, the upper bits of the hash of its
 * text. Texts are compared only if these are equal: they are rarely in the processor's cache. The
 * lower bits of the hash select the slot.
 */
#define ID_BITS GGUF_TOKEN_ID_BITS

static uint32_t make_slot(uint32_t id, uint64_t hash)
{
    return (uint32_t)(hash >> (32 + ID_BITS)) << ID_BITS | (id + 1);
}

static uint32_t id_of(uint32_t slot)
{
    return (slot & ((1u << ID_BITS) - 1)) - 1;
}

/* Return the slot of the token with that text, or the free slot for it. */
static uint32_t *find_slot(const struct run_vocabulary *vocabulary, uint64_t hash, const char *text,
                           size_t length)
{
    const uint32_t tag = (uint32_t)(hash >> (32 + ID_BITS));
    uint32_t at = (uint32_t)hash & vocabulary->slot_mask, slot;

    while (
        (slot = vocabulary->slots[at]) != 0 &&
        (slot >> ID_BITS != tag || !run_vocabulary_is_text(vocabulary, id_of(slot), text, length)))
        at = (at + 1) & vocabulary->slot_mask;
    return &vocabulary->slots[at];
}

static void fill_slots(struct run_vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);
        const uint64_t hash = gguf_hash(&vocabulary->key, text, length);
        uint32_t *slot = find_slot(vocabulary, hash, text, length);

        if (*slot != 0)
            vocabulary->is_unique = false;
        else if (length > 0)
            *slot = make_slot(id, hash);
    }
}

static int make_slots(struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    uint32_t n = 512;
    int code;

    while (n < 2 * vocabulary->n)
        n *= 2;
    code = gguf_hash_key_make(&vocabulary->key);
    if (code < 0)
        return run_fail(failure, code, "random numbers for a hash: %s", strerror(-code));
    vocabulary->slots = calloc(n, sizeof *vocabulary->slots);
    if (!vocabulary->slots)
        return run_fail_memory(failure);
    vocabulary->slot_mask = n - 1;
    vocabulary->is_unique = true;
    fill_slots(vocabulary);
    return 0;
}

int32_t run_vocabulary_find(const struct run_vocabulary *vocabulary, const char *text,
                            size_t length)
{
    uint32_t slot;

    if (length == 0 || length > vocabulary->longest_bytes)
        return -1;
    slot = *find_slot(vocabulary, gguf_hash(&vocabulary->key, text, length), text, length);
    return slot == 0 ? -1 : (int32_t)id_of(slot);
}

int32_t run_vocabulary_find_text(const struct run_vocabulary *vocabulary, const char *text,
                                 size_t length)
{
    const int32_t id = run_vocabulary_find(vocabulary, text, length);

    if (id < 0 || vocabulary->types[id] == GGUF_TOKEN_BYTE ||
        run_vocabulary_is_control(vocabulary, (uint32_t)id))
        return -1;
    return id;
}

/* ---- all of it ---- */

/* Read the array of a key with `read`, if the key exists. */
static int read_array(const struct run_metadata *metadata, const char *key,
                      int (*read)(struct run_json *, struct run_vocabulary *, struct run_failure *),
                      struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    struct run_json *json;
    int code = run_metadata_array(metadata, key, &json, failure);

    if (code == 0 && json)
        code = read(json, vocabulary, failure);
    run_json_close(json);
    return code;
}

int run_vocabulary_read(const struct run_metadata *metadata, struct run_vocabulary *vocabulary,
                        struct run_failure *failure)
{
    int code;

    *vocabulary = (struct run_vocabulary){0};
    code = read_array(metadata, KEY "tokens", read_texts, vocabulary, failure);
    if (code == 0 && vocabulary->n == 0)
        code = run_fail(failure, -ENOENT, "metadata: no " KEY "tokens");
    if (code == 0)
        code = read_array(metadata, KEY "token_type", read_types, vocabulary, failure);
    return code < 0 ? code : make_slots(vocabulary, failure);
}

int run_vocabulary_count(const struct run_metadata *metadata, size_t *n,
                         struct run_failure *failure)
{
    struct run_json *tokens;
    struct run_json_token token;
    int code = run_metadata_array(metadata, KEY "tokens", &tokens, failure);

    *n = 0;
    while (code >= 0 && tokens && (code = run_json_element(tokens, &token, failure)) > 0)
        ++*n;
    run_json_close(tokens);
    return code;
}

int run_vocabulary_read_scores(const struct run_metadata *metadata,
                               struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    return read_array(metadata, KEY "scores", read_scores, vocabulary, failure);
}

int run_vocabulary_make_bytes(struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    *vocabulary = (struct run_vocabulary){.n = 256, .longest_bytes = 1};
    vocabulary->texts = malloc(256);
    vocabulary->starts = calloc(257, sizeof *vocabulary->starts);
    vocabulary->types = malloc(256);
    if (!vocabulary->texts || !vocabulary->starts || !vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, 256);
    for (uint32_t i = 0; i < 256; i++) {
        vocabulary->texts[i] = (char)i;
        vocabulary->starts[i + 1] = i + 1;
    }
    return make_slots(vocabulary, failure);
}

void run_vocabulary_free(struct run_vocabulary *vocabulary)
{
    free(vocabulary->texts);
    free(vocabulary->starts);
    free(vocabulary->types);
    free(vocabulary->scores);
    free(vocabulary->slots);
    *vocabulary = (struct run_vocabulary){0};
}

/* ---- bytes ---- */

bool run_vocabulary_is_byte(const struct run_vocabulary *vocabulary, uint32_t id, uint8_t *byte)
{
    uint32_t length;
    const char *text = run_vocabulary_text(vocabulary, id, &length);

    return gguf_byte_token_parse(text, length, byte);
}

void run_vocabulary_find_bytes(const struct run_vocabulary *vocabulary, int32_t ids[256])
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char own = (char)byte;
        char name[8];

        snprintf(name, sizeof name, GGUF_BYTE_TOKEN_FORMAT, byte);
        ids[byte] = run_vocabulary_find(vocabulary, name, strlen(name));
        if (ids[byte] < 0 || run_vocabulary_is_control(vocabulary, (uint32_t)ids[byte]))
            ids[byte] = run_vocabulary_find_text(vocabulary, &own, 1);
    }
}
