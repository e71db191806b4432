#include "contrib/runner/tokenizer/token_vocabulary.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

/* More than any model's; metadata.json is smaller than what these take. */
#define MAX_TOKENS     ((uint32_t)1 << 26)
#define MAX_TEXT_BYTES ((size_t)1 << 30)

static int find_array(const struct run_metadata *metadata, const char *key, const cJSON **out,
                      struct run_failure *failure)
{
    *out = run_metadata_find(metadata, key);
    if (*out && !cJSON_IsArray(*out))
        return run_fail(failure, -EINVAL, "metadata.json: %s: not an array", key);
    return 0;
}

size_t run_unfold_nul(const char *from, size_t length, char *to)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        const bool is_nul = i + 1 < length && memcmp(from + i, "\xc0\x80", 2) == 0;

        to[n++] = is_nul ? '\0' : from[i];
        i += is_nul;
    }
    return n;
}

static int read_texts(const cJSON *tokens, struct run_vocabulary *vocabulary,
                      struct run_failure *failure)
{
    size_t total_bytes = 0, n = 0;
    const cJSON *token;

    cJSON_ArrayForEach(token, tokens)
    {
        if (!cJSON_IsString(token))
            return run_fail(failure, -EINVAL,
                            "metadata.json: " KEY "tokens: element %zu is not a string", n);
        total_bytes += strlen(token->valuestring);
        n++;
        if (n > MAX_TOKENS || total_bytes > MAX_TEXT_BYTES)
            return run_fail(failure, -E2BIG,
                            "metadata.json: " KEY "tokens: more than %" PRIu32
                            " tokens or %zu bytes",
                            MAX_TOKENS, MAX_TEXT_BYTES);
    }
    if (n == 0)
        return run_fail(failure, -EINVAL, "metadata.json: " KEY "tokens: no tokens");
    vocabulary->texts = malloc(total_bytes + 1);
    vocabulary->starts = calloc(n + 1, sizeof *vocabulary->starts);
    vocabulary->types = malloc(n);
    if (!vocabulary->texts || !vocabulary->starts || !vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, RUN_TOKEN_NORMAL, n);
    vocabulary->n = (uint32_t)n;
    n = 0;
    total_bytes = 0;
    cJSON_ArrayForEach(token, tokens)
    {
        const size_t length = run_unfold_nul(token->valuestring, strlen(token->valuestring),
                                             vocabulary->texts + total_bytes);

        total_bytes += length;
        vocabulary->starts[++n] = (uint32_t)total_bytes;
        if (length > vocabulary->longest_bytes)
            vocabulary->longest_bytes = (uint32_t)length;
    }
    return 0;
}

static int read_types(const cJSON *types, struct run_vocabulary *vocabulary,
                      struct run_failure *failure)
{
    uint32_t n = 0;
    const cJSON *type;

    cJSON_ArrayForEach(type, types)
    {
        if (!cJSON_IsNumber(type))
            return run_fail(failure, -EINVAL,
                            "metadata.json: " KEY "token_type: element %" PRIu32 " is not a number",
                            n);
        if (n == vocabulary->n)
            break;
        vocabulary->types[n++] = type->valuedouble >= 0 && type->valuedouble <= RUN_TOKEN_BYTE
                                     ? (uint8_t)type->valuedouble
                                     : RUN_TOKEN_UNDEFINED;
    }
    if (n < vocabulary->n)
        return run_fail(failure, -EINVAL,
                        "metadata.json: " KEY "token_type: %" PRIu32 " values for %" PRIu32
                        " tokens",
                        n, vocabulary->n);
    return 0;
}

static int read_scores(const cJSON *scores, struct run_vocabulary *vocabulary,
                       struct run_failure *failure)
{
    uint32_t n = 0;
    const cJSON *score;

    vocabulary->scores = calloc(vocabulary->n, sizeof *vocabulary->scores);
    if (!vocabulary->scores)
        return run_fail_memory(failure);
    cJSON_ArrayForEach(score, scores)
    {
        /* Those that are not finite numbers are no numbers in JSON. */
        const float value = cJSON_IsNumber(score) ? (float)score->valuedouble : -FLT_MAX;

        if (!cJSON_IsNumber(score) && !cJSON_IsNull(score) && !cJSON_IsString(score))
            return run_fail(failure, -EINVAL,
                            "metadata.json: " KEY "scores: element %" PRIu32 " is not a number", n);
        if (n == vocabulary->n)
            break;
        vocabulary->scores[n++] = isfinite(value) ? value : -FLT_MAX;
    }
    if (n < vocabulary->n)
        return run_fail(failure, -EINVAL,
                        "metadata.json: " KEY "scores: %" PRIu32 " values for %" PRIu32 " tokens",
                        n, vocabulary->n);
    return 0;
}

/* ---- texts to ids ---- */

static bool is_text_of(const struct run_vocabulary *vocabulary, uint32_t id, const char *text,
                       size_t length)
{
    uint32_t own_length;
    const char *own = run_vocabulary_text(vocabulary, id, &own_length);

    return own_length == length && memcmp(own, text, length) == 0;
}

/* The slot with the token of that text, or the empty one where it would be. */
static uint32_t *find_slot(const struct run_vocabulary *vocabulary, const char *text, size_t length)
{
    uint32_t at = (uint32_t)gguf_hash(&vocabulary->key, text, length) & vocabulary->slot_mask;

    while (vocabulary->slots[at] != 0 &&
           !is_text_of(vocabulary, vocabulary->slots[at] - 1, text, length))
        at = (at + 1) & vocabulary->slot_mask;
    return &vocabulary->slots[at];
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
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);
        uint32_t *slot = find_slot(vocabulary, text, length);

        if (*slot == 0 && length > 0)
            *slot = id + 1;
    }
    return 0;
}

int32_t run_vocabulary_find(const struct run_vocabulary *vocabulary, const char *text,
                            size_t length)
{
    if (length == 0 || length > vocabulary->longest_bytes)
        return -1;
    return (int32_t)*find_slot(vocabulary, text, length) - 1;
}

int32_t run_vocabulary_find_text(const struct run_vocabulary *vocabulary, const char *text,
                                 size_t length)
{
    const int32_t id = run_vocabulary_find(vocabulary, text, length);

    if (id < 0 || vocabulary->types[id] == RUN_TOKEN_BYTE ||
        run_vocabulary_is_control(vocabulary, (uint32_t)id))
        return -1;
    return id;
}

/* ---- all of it ---- */

int run_vocabulary_read(const struct run_metadata *metadata, struct run_vocabulary *vocabulary,
                        struct run_failure *failure)
{
    const cJSON *tokens, *types = NULL, *scores = NULL;
    int code;

    *vocabulary = (struct run_vocabulary){0};
    code = find_array(metadata, KEY "tokens", &tokens, failure);
    if (code == 0)
        code = find_array(metadata, KEY "token_type", &types, failure);
    if (code == 0)
        code = find_array(metadata, KEY "scores", &scores, failure);
    if (code < 0)
        return code;
    if (!tokens)
        return run_fail(failure, -ENOENT, "metadata.json: no " KEY "tokens");
    code = read_texts(tokens, vocabulary, failure);
    if (code == 0 && types)
        code = read_types(types, vocabulary, failure);
    if (code == 0 && scores)
        code = read_scores(scores, vocabulary, failure);
    return code < 0 ? code : make_slots(vocabulary, failure);
}

int run_vocabulary_make_bytes(struct run_vocabulary *vocabulary, struct run_failure *failure)
{
    *vocabulary = (struct run_vocabulary){.n = 256, .longest_bytes = 1};
    vocabulary->texts = malloc(256);
    vocabulary->starts = calloc(257, sizeof *vocabulary->starts);
    vocabulary->types = malloc(256);
    if (!vocabulary->texts || !vocabulary->starts || !vocabulary->types)
        return run_fail_memory(failure);
    memset(vocabulary->types, RUN_TOKEN_NORMAL, 256);
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

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool run_vocabulary_is_byte(const struct run_vocabulary *vocabulary, uint32_t id, uint8_t *byte)
{
    uint32_t length;
    const char *text = run_vocabulary_text(vocabulary, id, &length);

    if (length != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>' || digit_value(text[3]) < 0 ||
        digit_value(text[4]) < 0)
        return false;
    *byte = (uint8_t)(16 * digit_value(text[3]) + digit_value(text[4]));
    return true;
}

void run_vocabulary_find_bytes(const struct run_vocabulary *vocabulary, int32_t ids[256])
{
    for (unsigned byte = 0; byte < 256; byte++) {
        const char own = (char)byte;
        char name[8];

        snprintf(name, sizeof name, "<0x%02X>", byte);
        ids[byte] = run_vocabulary_find(vocabulary, name, strlen(name));
        if (ids[byte] < 0 || run_vocabulary_is_control(vocabulary, (uint32_t)ids[byte]))
            ids[byte] = run_vocabulary_find_text(vocabulary, &own, 1);
    }
}
