#include "contrib/runner/tokenizer/token_vocabulary.h"

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

/* Take all texts from the first on. */
static int take_texts(struct run_vocabulary *vocabulary, const struct gguf_json *first,
                      struct run_failure *failure)
{
    size_t n = 0, n_bytes = 0;

    for (const struct gguf_json *token = first; token; token = token->next) {
        if (token->kind != GGUF_JSON_STRING)
            return run_fail(failure, -EINVAL,
                            "metadata: " KEY "tokens: element %zu is not a string", n);
        if (token->text.length_bytes > MAX_TOKEN_BYTES)
            return run_fail(failure, -E2BIG,
                            "metadata: " KEY "tokens: element %zu has %zu bytes, more than %zu", n,
                            token->text.length_bytes, MAX_TOKEN_BYTES);
        n_bytes += token->text.length_bytes;
        if (n++ == GGUF_MAX_TOKENS || n_bytes > GGUF_MAX_TOKENS_BYTES)
            return run_fail(failure, -E2BIG,
                            "metadata: " KEY "tokens: more than %u tokens or %u bytes",
                            GGUF_MAX_TOKENS, GGUF_MAX_TOKENS_BYTES);
    }
    vocabulary->texts = malloc(n_bytes + 1);
    vocabulary->starts = calloc(n + 1, sizeof *vocabulary->starts);
    vocabulary->types = malloc(n + 1);
    if (!vocabulary->texts || !vocabulary->starts || !vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, n + 1);
    for (const struct gguf_json *token = first; token; token = token->next) {
        const uint32_t length = (uint32_t)token->text.length_bytes;
        const uint32_t start = vocabulary->starts[vocabulary->n];

        memcpy(vocabulary->texts + start, token->text.data, length);
        vocabulary->starts[++vocabulary->n] = start + length;
        if (length > vocabulary->longest_bytes)
            vocabulary->longest_bytes = length;
    }
    return 0;
}

/* Read an array with a number for each token. `*values`: owned by the caller; NULL: no key. */
static int read_values(const struct run_metadata *metadata, const char *key, uint32_t n,
                       float **values, struct run_failure *failure)
{
    const struct gguf_json *array, *item;
    struct run_json json;
    uint32_t index = 0;
    int code = run_metadata_array(metadata, key, &json, &array, failure);

    *values = NULL;
    if (code < 0 || !array)
        return code;
    *values = calloc(n, sizeof **values);
    if (!*values)
        code = run_fail_memory(failure);
    for (item = array->child; code == 0 && item && index < n; item = item->next, index++) {
        /* JSON has no NaN and no infinity: the tree has null for them. */
        if (item->kind != GGUF_JSON_NUMBER && item->kind != GGUF_JSON_NULL)
            code = run_fail(failure, -EINVAL, "metadata: %s: element %" PRIu32 " is not a number",
                            key, index);
        (*values)[index] = item->kind == GGUF_JSON_NUMBER && isfinite((float)item->number)
                               ? (float)item->number
                               : -FLT_MAX;
    }
    if (code == 0 && index < n)
        code = run_fail(failure, -EINVAL, "metadata: %s: %" PRIu32 " values for %" PRIu32 " tokens",
                        key, index, n);
    run_json_free(&json);
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
    const struct gguf_json *tokens;
    struct run_json json;
    float *types = NULL;
    int code = run_metadata_array(metadata, KEY "tokens", &json, &tokens, failure);

    *vocabulary = (struct run_vocabulary){0};
    if (code < 0)
        return code;
    if (!tokens)
        return run_fail(failure, -ENOENT, "metadata: no " KEY "tokens");
    code = tokens->child ? take_texts(vocabulary, tokens->child, failure)
                         : run_fail(failure, -EINVAL, "metadata: " KEY "tokens: no tokens");
    run_json_free(&json);
    if (code == 0)
        code = read_values(metadata, KEY "token_type", vocabulary->n, &types, failure);
    for (uint32_t id = 0; code == 0 && types && id < vocabulary->n; id++)
        vocabulary->types[id] = types[id] >= 0 && types[id] <= GGUF_TOKEN_BYTE
                                    ? (uint8_t)types[id]
                                    : GGUF_TOKEN_UNDEFINED;
    free(types);
    return code < 0 ? code : make_slots(vocabulary, failure);
}

int run_vocabulary_read_scores(const struct run_metadata *metadata,
                               struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    return read_values(metadata, KEY "scores", vocabulary->n, &vocabulary->scores, failure);
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
