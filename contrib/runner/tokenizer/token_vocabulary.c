#include "contrib/runner/tokenizer/token_vocabulary.h"

#include "contrib/runner/tokenizer/token_ids.h"
#include "gguf/models/tokens.h"

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

/* An array that is read. */
struct reading {
    struct run_vocabulary *vocabulary;
    uint32_t n; /* elements taken */
    size_t text_capacity, start_capacity;
};

static int take_text(void *context, uint32_t index, const struct gguf_json *token,
                     struct run_failure *failure)
{
    struct reading *reading = context;
    struct run_vocabulary *vocabulary = reading->vocabulary;
    const uint32_t start = index > 0 ? vocabulary->starts[index] : 0;
    const size_t end = start + token->text.length_bytes;

    if (token->kind != GGUF_JSON_STRING)
        return run_fail(failure, -EINVAL,
                        "metadata: " KEY "tokens: element %" PRIu32 " is not a string", index);
    if (token->text.length_bytes > MAX_TOKEN_BYTES)
        return run_fail(failure, -E2BIG,
                        "metadata: " KEY "tokens: element %" PRIu32 " has %zu bytes, more than %zu",
                        index, token->text.length_bytes, MAX_TOKEN_BYTES);
    if (index == GGUF_MAX_TOKENS || end > GGUF_MAX_TOKENS_BYTES)
        return run_fail(failure, -E2BIG, "metadata: " KEY "tokens: more than %u tokens or %u bytes",
                        GGUF_MAX_TOKENS, GGUF_MAX_TOKENS_BYTES);
    if (run_reserve(&vocabulary->texts, &reading->text_capacity, end + 1, 1) < 0 ||
        run_reserve(&vocabulary->starts, &reading->start_capacity, index + 2,
                    sizeof *vocabulary->starts) < 0)
        return run_fail_memory(failure);
    memcpy(vocabulary->texts + start, token->text.data, token->text.length_bytes);
    vocabulary->starts[index] = start;
    vocabulary->starts[index + 1] = (uint32_t)end;
    vocabulary->n = index + 1;
    if (token->text.length_bytes > vocabulary->longest_bytes)
        vocabulary->longest_bytes = (uint32_t)token->text.length_bytes;
    return 1;
}

static int take_type(void *context, uint32_t index, const struct gguf_json *type,
                     struct run_failure *failure)
{
    struct reading *reading = context;
    struct run_vocabulary *vocabulary = reading->vocabulary;

    if (type->kind != GGUF_JSON_NUMBER)
        return run_fail(failure, -EINVAL,
                        "metadata: " KEY "token_type: element %" PRIu32 " is not a number", index);
    vocabulary->types[index] = type->number >= 0 && type->number <= GGUF_TOKEN_BYTE
                                   ? (uint8_t)type->number
                                   : GGUF_TOKEN_UNDEFINED;
    reading->n = index + 1;
    return reading->n < vocabulary->n;
}

static int take_score(void *context, uint32_t index, const struct gguf_json *score,
                      struct run_failure *failure)
{
    struct reading *reading = context;
    struct run_vocabulary *vocabulary = reading->vocabulary;
    /* JSON has no NaN and no infinity: the tree has null for them. */
    const float value = score->kind == GGUF_JSON_NUMBER ? (float)score->number : -FLT_MAX;

    if (score->kind != GGUF_JSON_NUMBER && score->kind != GGUF_JSON_NULL &&
        score->kind != GGUF_JSON_STRING)
        return run_fail(failure, -EINVAL,
                        "metadata: " KEY "scores: element %" PRIu32 " is not a number", index);
    if (index == 0)
        vocabulary->scores = calloc((size_t)vocabulary->n, sizeof *vocabulary->scores);
    if (!vocabulary->scores)
        return run_fail_memory(failure);
    vocabulary->scores[index] = isfinite(value) ? value : -FLT_MAX;
    reading->n = index + 1;
    return reading->n < vocabulary->n;
}

/* Read an array with an element for each token, if the key exists. */
static int read_array(const struct run_metadata *metadata, const char *key, run_take_element *take,
                      struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    struct reading reading = {.vocabulary = vocabulary};
    int code = run_metadata_each(metadata, key, take, &reading, failure);

    if (code == 0 && reading.n < vocabulary->n && run_metadata_has(metadata, key))
        code = run_fail(failure, -EINVAL, "metadata: %s: %" PRIu32 " values for %" PRIu32 " tokens",
                        key, reading.n, vocabulary->n);
    return code;
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

int run_vocabulary_read(const struct run_metadata *metadata, struct run_vocabulary *vocabulary,
                        struct run_failure *failure)
{
    struct reading reading = {.vocabulary = vocabulary};
    int code;

    *vocabulary = (struct run_vocabulary){0};
    code = run_metadata_each(metadata, KEY "tokens", take_text, &reading, failure);
    if (code < 0)
        return code;
    if (vocabulary->n == 0 && run_metadata_has(metadata, KEY "tokens"))
        return run_fail(failure, -EINVAL, "metadata: " KEY "tokens: no tokens");
    if (vocabulary->n == 0)
        return run_fail(failure, -ENOENT, "metadata: no " KEY "tokens");
    vocabulary->types = malloc(vocabulary->n);
    if (!vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, vocabulary->n);
    code = read_array(metadata, KEY "token_type", take_type, vocabulary, failure);
    return code < 0 ? code : make_slots(vocabulary, failure);
}

static int count(void *context, uint32_t index, const struct gguf_json *element,
                 struct run_failure *failure)
{
    (void)element;
    (void)failure;
    *(size_t *)context = (size_t)index + 1;
    return 1;
}

int run_vocabulary_count(const struct run_metadata *metadata, size_t *n,
                         struct run_failure *failure)
{
    *n = 0;
    return run_metadata_each(metadata, KEY "tokens", count, n, failure);
}

int run_vocabulary_read_scores(const struct run_metadata *metadata,
                               struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    return read_array(metadata, KEY "scores", take_score, vocabulary, failure);
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
