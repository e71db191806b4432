#include "fs/tree/hf/vocabulary_index.h"

#include "fs/tree/hf/vocabulary_keys.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int fs_vocabulary_make(const struct gguf_model *model, struct fs_vocabulary **vocabulary)
{
    struct fs_vocabulary *made = calloc(1, sizeof *made);

    *vocabulary = made;
    if (!made)
        return -ENOMEM;
    made->model = model;
    pthread_mutex_init(&made->lock, NULL);
    fs_vocabulary_read_keys(made);
    return 0;
}

static void free_index(struct fs_vocabulary *vocabulary)
{
    free(vocabulary->starts);
    free(vocabulary->types);
    free(vocabulary->slots);
    free(vocabulary->merge_order);
    vocabulary->starts = NULL;
    vocabulary->types = NULL;
    vocabulary->slots = NULL;
    vocabulary->merge_order = NULL;
}

void fs_vocabulary_free(struct fs_vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    free_index(vocabulary);
    pthread_mutex_destroy(&vocabulary->lock);
    free(vocabulary);
}

/* ---- texts ---- */

/*
 * A slot holds an id plus 1 and, above it, bits of the hash of its text, so that texts are rarely
 * compared in vain. 0 is a free slot.
 */
#define ID_BITS GGUF_TOKEN_ID_BITS

static uint32_t id_of(uint32_t slot)
{
    return (slot & ((1u << ID_BITS) - 1)) - 1;
}

/* Return the slot of the first token with that text, or the free slot for it. */
static uint32_t *find_slot(const struct fs_vocabulary *vocabulary, struct gguf_string text,
                           uint64_t hash)
{
    const uint32_t tag = (uint32_t)(hash >> (32 + ID_BITS));
    uint32_t at = (uint32_t)hash & vocabulary->slot_mask, slot;

    while ((slot = vocabulary->slots[at]) != 0 &&
           (slot >> ID_BITS != tag ||
            gguf_string_compare(fs_vocabulary_text(vocabulary, id_of(slot)), text) != 0))
        at = (at + 1) & vocabulary->slot_mask;
    return &vocabulary->slots[at];
}

static uint64_t hash_of(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    return gguf_hash(&vocabulary->key, text.data, (size_t)text.length_bytes);
}

int32_t fs_vocabulary_find(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    const uint32_t slot = *find_slot(vocabulary, text, hash_of(vocabulary, text));

    return slot == 0 ? GGUF_NO_TOKEN : (int32_t)id_of(slot);
}

static int32_t find_literal(const void *vocabulary, const char *text)
{
    return fs_vocabulary_find(vocabulary, (struct gguf_string){text, strlen(text)});
}

/* ---- making the index ---- */

static int index_texts(struct fs_vocabulary *vocabulary)
{
    const struct gguf_array *tokens = vocabulary->tokens;
    struct gguf_cursor cursor = gguf_array_begin(tokens);
    uint32_t n_slots = 512;

    while (n_slots < 2 * vocabulary->n_tokens)
        n_slots *= 2;
    vocabulary->slot_mask = n_slots - 1;
    vocabulary->slots = calloc(n_slots, sizeof *vocabulary->slots);
    vocabulary->starts = calloc((size_t)vocabulary->n_tokens + 1, sizeof *vocabulary->starts);
    if (!vocabulary->slots || !vocabulary->starts)
        return -ENOMEM;
    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        struct gguf_value text;

        gguf_array_next(&cursor, GGUF_STRING, &text);
        vocabulary->starts[id + 1] = vocabulary->starts[id] + tokens->encoding.length_bytes +
                                     (uint32_t)text.string.length_bytes;
    }
    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        const struct gguf_string text = fs_vocabulary_text(vocabulary, id);
        const uint64_t hash = hash_of(vocabulary, text);
        uint32_t *slot = find_slot(vocabulary, text, hash);

        if (*slot == 0)
            *slot = (uint32_t)(hash >> (32 + ID_BITS)) << ID_BITS | (id + 1);
    }
    return 0;
}

static int index_types(struct fs_vocabulary *vocabulary)
{
    vocabulary->types = malloc((size_t)vocabulary->n_tokens + 1);
    if (!vocabulary->types)
        return -ENOMEM;
    memset(vocabulary->types, GGUF_TOKEN_NORMAL, vocabulary->n_tokens);
    for (uint32_t id = 0; vocabulary->token_types && id < vocabulary->n_tokens; id++) {
        const double type = fs_array_number(vocabulary->token_types, id);

        vocabulary->types[id] =
            type >= 0 && type <= GGUF_TOKEN_BYTE ? (uint8_t)type : GGUF_TOKEN_UNDEFINED;
    }
    gguf_correct_token_types(vocabulary->types, find_literal, vocabulary);
    return 0;
}

/* Return a number that is lower the higher the score is. */
static uint32_t rank_of(const struct fs_vocabulary *vocabulary, uint32_t id)
{
    float score;
    uint32_t bits;

    if (vocabulary->kind != FS_SENTENCEPIECE || !vocabulary->scores)
        return id;
    score = (float)fs_array_number(vocabulary->scores, id);
    if (!isfinite(score))
        score = -FLT_MAX;
    score += 0.0f; /* turns -0 into 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

static void find_lowest_score(struct fs_vocabulary *vocabulary)
{
    float lowest = FLT_MAX;

    for (uint32_t id = 0; vocabulary->scores && id < vocabulary->n_tokens; id++) {
        const float score = (float)fs_array_number(vocabulary->scores, id);

        if (vocabulary->types[id] == GGUF_TOKEN_NORMAL && score < lowest && isfinite(score))
            lowest = score;
    }
    vocabulary->lowest_score = lowest < FLT_MAX ? lowest : 0;
}

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return (first > second) - (first < second);
}

/* Sort the tokens by rank; tokens of equal rank stay in the order of ids. */
static int order_merges(struct fs_vocabulary *vocabulary)
{
    const uint32_t n = vocabulary->n_tokens;
    uint64_t *numbers;

    if (fs_has_merges(vocabulary) ||
        (vocabulary->kind != FS_SENTENCEPIECE && vocabulary->kind != FS_BYTE_PAIR))
        return 0;
    numbers = calloc(n, sizeof *numbers);
    vocabulary->merge_order = calloc(n, sizeof *vocabulary->merge_order);
    for (uint32_t id = 0; numbers && id < n; id++)
        numbers[id] = (uint64_t)rank_of(vocabulary, id) << 32 | id;
    if (numbers && vocabulary->merge_order) {
        qsort(numbers, n, sizeof *numbers, compare_numbers);
        for (uint32_t i = 0; i < n; i++)
            vocabulary->merge_order[i] = (uint32_t)numbers[i];
    }
    free(numbers);
    return numbers && vocabulary->merge_order ? 0 : -ENOMEM;
}

static int make_index(struct fs_vocabulary *vocabulary)
{
    int result = gguf_hash_key_make(&vocabulary->key);

    if (result == 0)
        result = index_texts(vocabulary);
    if (result == 0)
        result = index_types(vocabulary);
    if (result == 0)
        result = order_merges(vocabulary);
    if (result < 0) {
        free_index(vocabulary);
        return result;
    }
    find_lowest_score(vocabulary);
    fs_vocabulary_read_ids(vocabulary, find_literal(vocabulary, "<|endoftext|>"));
    return 0;
}

int fs_vocabulary_load(struct fs_vocabulary *vocabulary)
{
    int result = 0;

    pthread_mutex_lock(&vocabulary->lock);
    if (!vocabulary->starts)
        result = make_index(vocabulary);
    pthread_mutex_unlock(&vocabulary->lock);
    return result;
}
