/* Finds the special tokens: those that the metadata name, and those known by their texts. */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

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
 * Read the ids. An id out of range counts as missing, as in many files; a value that is not a
 * number is an error.
 */
static int read_ids(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                    struct run_failure *failure)
{
    struct gguf_special_ids *ids = &tokenizer->special;
    const uint32_t n = tokenizer->vocabulary.n;

    for (size_t i = 0; i < GGUF_N_SPECIAL_KEYS; i++) {
        const char *key = gguf_special_keys[i].name;
        int32_t *id = gguf_special_id(ids, &gguf_special_keys[i]);
        double value = -1;
        const int code = run_metadata_number(metadata, key, RUN_SCALAR, NULL, &value, failure);

        if (code < 0)
            return code;
        if (*id >= (int32_t)n)
            *id = RUN_NO_TOKEN;
        if (value >= 0 && value < n)
            *id = (int32_t)value;
        else if (value >= 0 && value < UINT32_MAX)
            run_tokenizer_add_note(tokenizer, "%s: %.17g, but there are %u tokens", key, value, n);
    }
    ids->is_bos_added = run_metadata_is_true(metadata, KEY "add_bos_token", ids->is_bos_added);
    ids->is_eos_added = run_metadata_is_true(metadata, KEY "add_eos_token", ids->is_eos_added);
    return 0;
}

/* Set marks of a token, if there is one, and clear others. */
static void mark(struct run_tokenizer *tokenizer, int32_t id, unsigned set, unsigned clear)
{
    if (id >= 0)
        tokenizer->marks[id] = (uint8_t)((tokenizer->marks[id] & ~clear) | set);
}

static void mark_all(struct run_tokenizer *tokenizer, const char *const *texts, unsigned set)
{
    for (; *texts; texts++)
        mark(tokenizer, find(tokenizer, *texts), set, 0);
}

static bool is_end_text(const struct run_tokenizer *tokenizer, const char *text)
{
    return run_tokenizer_is_end(tokenizer, find(tokenizer, text));
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
    mark(tokenizer, ids->eos, RUN_MARK_END, 0);
    mark(tokenizer, ids->eot, RUN_MARK_END, 0);
    mark(tokenizer, ids->eom, RUN_MARK_END, 0);
    /* In gpt-oss and Solar, it ends a message that is followed by another one. */
    if (is_end_text(tokenizer, "<|end|>") &&
        (is_end_text(tokenizer, "<|return|>") || is_end_text(tokenizer, "<|flush|>")) &&
        (is_end_text(tokenizer, "<|call|>") || is_end_text(tokenizer, "<|calls|>")))
        mark(tokenizer, find(tokenizer, "<|end|>"), RUN_MARK_SHOWN, RUN_MARK_END);
    /* In Gemma 4, these are HTML. */
    if (is_end_text(tokenizer, "<|tool_response>"))
        mark(tokenizer, find(tokenizer, "</s>"), 0, RUN_MARK_END);
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

        mark(tokenizer, (int32_t)id,
             (strips & GGUF_STRIP_LEFT ? RUN_MARK_TAKES_LEFT : 0U) |
                 (strips & GGUF_STRIP_RIGHT ? RUN_MARK_TAKES_RIGHT : 0U),
             0);
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
