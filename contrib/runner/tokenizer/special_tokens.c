/* Finds the special tokens: those that the metadata name, and those known by their texts. */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "gguf/models/tokens.h"

#include <stddef.h>
#include <string.h>

#define KEY "tokenizer.ggml."

static int32_t find_in_vocabulary(const void *vocabulary, const char *text)
{
    return run_vocabulary_find(vocabulary, text, strlen(text));
}

static int32_t find(const struct run_tokenizer *tokenizer, const char *text)
{
    return find_in_vocabulary(&tokenizer->vocabulary, text);
}

/*
 * Read a token's id. An id out of range counts as missing, as in many files; a value that
 * is not a number is an error.
 */
static int read_id(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                   const char *key, int32_t *id, struct run_failure *failure)
{
    double value = -1;
    int code;

    if (*id >= (int32_t)tokenizer->vocabulary.n)
        *id = RUN_NO_TOKEN;
    code = run_metadata_double(metadata, key, &value, failure);
    if (code < 0)
        return code;
    if (value >= 0 && value < tokenizer->vocabulary.n)
        *id = (int32_t)value;
    else if (value >= 0 && value < UINT32_MAX)
        run_tokenizer_add_note(tokenizer, "%s: %.17g, but there are %u tokens", key, value,
                               tokenizer->vocabulary.n);
    return 0;
}

static int read_ids(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                    struct run_failure *failure)
{
    struct gguf_special_ids *ids = &tokenizer->special;
    int code = 0;

    for (size_t i = 0; code == 0 && i < GGUF_N_SPECIAL_KEYS; i++)
        code = read_id(tokenizer, metadata, gguf_special_keys[i].name,
                       gguf_special_id(ids, &gguf_special_keys[i]), failure);
    ids->is_bos_added = run_metadata_is_true(metadata, KEY "add_bos_token", ids->is_bos_added);
    ids->is_eos_added = run_metadata_is_true(metadata, KEY "add_eos_token", ids->is_eos_added);
    return code;
}

static void mark_end(struct run_tokenizer *tokenizer, int32_t id)
{
    if (id >= 0)
        tokenizer->marks[id] |= RUN_MARK_END;
}

/* Set marks of the token with a text, if there is one, and then clear marks. */
static void mark(struct run_tokenizer *tokenizer, const char *text, uint8_t set, uint8_t clear)
{
    const int32_t id = find(tokenizer, text);

    if (id >= 0)
        tokenizer->marks[id] = (tokenizer->marks[id] | set) & (uint8_t)~clear;
}

static void mark_all(struct run_tokenizer *tokenizer, const char *const *texts, uint8_t set)
{
    for (; *texts; texts++)
        mark(tokenizer, *texts, set, 0);
}

static bool is_end_text(const struct run_tokenizer *tokenizer, const char *text)
{
    const int32_t id = find(tokenizer, text);

    return id >= 0 && tokenizer->marks[id] & RUN_MARK_END;
}

static void find_ends(struct run_tokenizer *tokenizer)
{
    struct gguf_special_ids *ids = &tokenizer->special;

    for (size_t i = 0; ids->eot < 0 && gguf_turn_ends[i]; i++)
        ids->eot = find(tokenizer, gguf_turn_ends[i]);
    if (ids->eom < 0)
        ids->eom = find(tokenizer, "<|eom_id|>");
    mark_all(tokenizer, gguf_turn_ends, RUN_MARK_END);
    mark_all(tokenizer, gguf_other_ends, RUN_MARK_END);
    mark_all(tokenizer, gguf_filled_ends, RUN_MARK_END);
    mark_all(tokenizer, gguf_shown_texts, RUN_MARK_SHOWN);
    mark_end(tokenizer, ids->eos);
    mark_end(tokenizer, ids->eot);
    mark_end(tokenizer, ids->eom);
    /* In gpt-oss and Solar, it ends a message that is followed by another one. */
    if (is_end_text(tokenizer, "<|end|>") &&
        (is_end_text(tokenizer, "<|return|>") || is_end_text(tokenizer, "<|flush|>")) &&
        (is_end_text(tokenizer, "<|call|>") || is_end_text(tokenizer, "<|calls|>")))
        mark(tokenizer, "<|end|>", RUN_MARK_SHOWN, RUN_MARK_END);
    /* In Gemma 4, these are HTML. */
    if (is_end_text(tokenizer, "<|tool_response>"))
        mark(tokenizer, "</s>", 0, RUN_MARK_END);
}

static void find_strips(struct run_tokenizer *tokenizer, const struct run_metadata *metadata)
{
    const struct gguf_strip_rule *rule = gguf_strip_rule_find(
        run_metadata_string(metadata, "general.name"), run_metadata_string(metadata, KEY "pre"),
        run_metadata_architecture(metadata));

    for (uint32_t id = 0; rule && id < tokenizer->vocabulary.n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(&tokenizer->vocabulary, id, &length);
        const unsigned strips = gguf_strips(rule, text, length, tokenizer->vocabulary.types[id]);

        if (strips & GGUF_STRIP_LEFT)
            tokenizer->marks[id] |= RUN_MARK_TAKES_LEFT;
        if (strips & GGUF_STRIP_RIGHT)
            tokenizer->marks[id] |= RUN_MARK_TAKES_RIGHT;
    }
}

int run_special_tokens_find(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure)
{
    const int code = read_ids(tokenizer, metadata, failure);

    if (code < 0)
        return code;
    gguf_correct_token_types(tokenizer->vocabulary.types, find_in_vocabulary,
                             &tokenizer->vocabulary);
    find_ends(tokenizer);
    find_strips(tokenizer, metadata);
    return 0;
}
