/*
 * Finds the special tokens. The metadata name some; others are recognised by their texts, with the
 * lists and exceptions of llama.cpp (src/llama-vocab.cpp), so that a model stops at the same
 * tokens.
 */
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#define KEY         "tokenizer.ggml."
#define COUNT(list) (sizeof(list) / sizeof *(list))

/* Texts that end a turn. The first one in the vocabulary is the EOT, unless a key gives another. */
static const char *const turn_ends[] = {
    "<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>"};

/* More texts that end a model's output. */
static const char *const other_ends[] = {"<|return|>", "<|call|>",         "<|flush|>", "<|calls|>",
                                         "</s>",       "<|eom_id|>",       "[EOS]",     "<eos>",
                                         "<turn|>",    "<|tool_response>", "[e~["};

/* Code models write these after they filled the gap: padding, next repository, next file. */
static const char *const filled_ends[] = {
    "<|fim_pad|>",   "<fim-pad>",  "<fim_pad>", "<PAD>",      "[PAD]",       "<|fim_repo|>",
    "<|repo_name|>", "<fim-repo>", "<REPO>",    "<reponame>", "<|file_sep|>"};

/* Markers of the gap in prompts to code models. */
static const char *const gap_marks[] = {
    "<|fim_prefix|>", "<fim-prefix>",    "<fim_prefix>",    "<｜fim▁begin｜>", "<PRE>",
    "▁<PRE>",         "<|code_prefix|>", "<|prefix|>",      "<|fim_suffix|>",  "<fim-suffix>",
    "<fim_suffix>",   "<｜fim▁hole｜>",  "<SUF>",           "▁<SUF>",          "<|code_suffix|>",
    "<|suffix|>",     "<|fim_middle|>",  "<fim-middle>",    "<fim_middle>",    "<｜fim▁end｜>",
    "<MID>",          "▁<MID>",          "<|code_middle|>", "<|middle|>"};

/* Separators in the output of gpt-oss, which readers need. In messages they are control tokens. */
static const char *const shown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

static int32_t find(const struct run_tokenizer *tokenizer, const char *text)
{
    return run_vocabulary_find(&tokenizer->vocabulary, text, strlen(text));
}

/*
 * Read a token's id. An id out of range counts as missing, since many files have such; a value that
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
        run_tokenizer_set_note(tokenizer, "%s: %.17g, but there are %u tokens", key, value,
                               tokenizer->vocabulary.n);
    return 0;
}

static int read_ids(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                    struct run_failure *failure)
{
    struct run_special_ids *ids = &tokenizer->special;
    const struct {
        const char *key;
        int32_t *id;
    } list[] = {
        {KEY "cls_token_id", &ids->bos},       {KEY "bos_token_id", &ids->bos},
        {KEY "eos_token_id", &ids->eos},       {KEY "eot_token_id", &ids->eot},
        {KEY "eom_token_id", &ids->eom},       {KEY "unknown_token_id", &ids->unk},
        {KEY "seperator_token_id", &ids->sep}, /* GGUF's spelling */
        {KEY "padding_token_id", &ids->pad},   {KEY "mask_token_id", &ids->mask},
    };
    int code = 0;

    for (size_t i = 0; code == 0 && i < COUNT(list); i++)
        code = read_id(tokenizer, metadata, list[i].key, list[i].id, failure);
    if (run_metadata_has(metadata, KEY "add_bos_token"))
        ids->is_bos_added = run_metadata_is_true(metadata, KEY "add_bos_token");
    if (run_metadata_has(metadata, KEY "add_eos_token"))
        ids->is_eos_added = run_metadata_is_true(metadata, KEY "add_eos_token");
    return code;
}

static void mark_end(struct run_tokenizer *tokenizer, int32_t id)
{
    if (id >= 0)
        tokenizer->marks[id] |= RUN_MARK_END;
}

static void mark_end_texts(struct run_tokenizer *tokenizer, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const int32_t id = find(tokenizer, texts[i]);

        if (id < 0)
            continue;
        mark_end(tokenizer, id);
        tokenizer->vocabulary.types[id] = RUN_TOKEN_CONTROL;
    }
}

static bool is_end_text(const struct run_tokenizer *tokenizer, const char *text)
{
    const int32_t id = find(tokenizer, text);

    return id >= 0 && tokenizer->marks[id] & RUN_MARK_END;
}

/* Make a token part of the output. It stays out of input unless the file calls it user-defined. */
static void mark_shown(struct run_tokenizer *tokenizer, const char *text)
{
    const int32_t id = find(tokenizer, text);

    if (id < 0)
        return;
    tokenizer->marks[id] |= RUN_MARK_SHOWN;
    if (tokenizer->vocabulary.types[id] != RUN_TOKEN_USER_DEFINED)
        tokenizer->vocabulary.types[id] = RUN_TOKEN_CONTROL;
}

/* Undo the marks of mark_end_texts() on a token, and set its type. */
static void unmark_end(struct run_tokenizer *tokenizer, const char *text, enum run_token_type type)
{
    const int32_t id = find(tokenizer, text);

    if (id < 0)
        return;
    tokenizer->marks[id] &= (uint8_t)~RUN_MARK_END;
    tokenizer->vocabulary.types[id] = (uint8_t)type;
}

/* Return the type that the file gives to the token with that text. */
static enum run_token_type type_of(const struct run_tokenizer *tokenizer, const char *text)
{
    const int32_t id = find(tokenizer, text);

    return id < 0 ? RUN_TOKEN_UNDEFINED : tokenizer->vocabulary.types[id];
}

static void find_ends(struct run_tokenizer *tokenizer)
{
    const enum run_token_type html_type = type_of(tokenizer, "</s>");
    struct run_special_ids *ids = &tokenizer->special;

    for (size_t i = 0; ids->eot < 0 && i < COUNT(turn_ends); i++)
        ids->eot = find(tokenizer, turn_ends[i]);
    if (ids->eom < 0)
        ids->eom = find(tokenizer, "<|eom_id|>");
    mark_end_texts(tokenizer, turn_ends, COUNT(turn_ends));
    mark_end_texts(tokenizer, other_ends, COUNT(other_ends));
    mark_end_texts(tokenizer, filled_ends, COUNT(filled_ends));
    for (size_t i = 0; i < COUNT(gap_marks); i++)
        if (find(tokenizer, gap_marks[i]) >= 0)
            tokenizer->vocabulary.types[find(tokenizer, gap_marks[i])] = RUN_TOKEN_CONTROL;
    for (size_t i = 0; i < COUNT(shown); i++)
        mark_shown(tokenizer, shown[i]);
    mark_end(tokenizer, ids->eos);
    mark_end(tokenizer, ids->eot);
    mark_end(tokenizer, ids->eom);
    /* In gpt-oss and Solar, it ends a message that is followed by another one. */
    if (is_end_text(tokenizer, "<|end|>") &&
        ((is_end_text(tokenizer, "<|return|>") &&
          (is_end_text(tokenizer, "<|call|>") || is_end_text(tokenizer, "<|calls|>"))) ||
         (is_end_text(tokenizer, "<|flush|>") &&
          (is_end_text(tokenizer, "<|call|>") || is_end_text(tokenizer, "<|calls|>"))))) {
        unmark_end(tokenizer, "<|end|>", RUN_TOKEN_CONTROL);
        mark_shown(tokenizer, "<|end|>");
    }
    /* In Gemma 4, these are HTML. */
    if (is_end_text(tokenizer, "<|tool_response>"))
        unmark_end(tokenizer, "</s>",
                   html_type == RUN_TOKEN_CONTROL ? html_type : RUN_TOKEN_NORMAL);
}

/* Return true if `text` contains `part`, ignoring ASCII case. */
static bool contains(const char *text, const char *part)
{
    return text && strcasestr(text, part) != NULL;
}

static void mark_text(struct run_tokenizer *tokenizer, const char *text, enum run_token_mark mark,
                      bool is_set)
{
    const int32_t id = find(tokenizer, text);

    if (id < 0)
        return;
    tokenizer->marks[id] &= (uint8_t)~mark;
    if (is_set)
        tokenizer->marks[id] |= (uint8_t)mark;
}

static bool is_special(const struct run_tokenizer *tokenizer, uint32_t id)
{
    const uint8_t type = tokenizer->vocabulary.types[id];

    return type == RUN_TOKEN_CONTROL || type == RUN_TOKEN_USER_DEFINED || type == RUN_TOKEN_UNKNOWN;
}

/*
 * Mark the tokens that take in neighbouring white space. GGUF does not record them; a few models
 * are known to have some.
 */
static void find_greedy(struct run_tokenizer *tokenizer, const struct run_metadata *metadata)
{
    const char *name = run_metadata_string(metadata, "general.name");
    const char *pre = run_metadata_string(metadata, KEY "pre");
    const char *architecture = run_metadata_architecture(metadata);

    if (contains(pre, "jina-v2-de") || contains(pre, "jina-v2-es") ||
        contains(pre, "jina-v2-code") || contains(architecture, "nomic-bert-moe") ||
        contains(architecture, "jina-bert-v3")) {
        mark_text(tokenizer, "<mask>", RUN_MARK_TAKES_LEFT, true);
    } else if (contains(name, "phi-3") || contains(name, "phi3")) {
        for (uint32_t id = 0; id < tokenizer->vocabulary.n; id++)
            if (is_special(tokenizer, id))
                tokenizer->marks[id] |= RUN_MARK_TAKES_RIGHT;
        mark_text(tokenizer, "</s>", RUN_MARK_TAKES_RIGHT, true);
        mark_text(tokenizer, "<unk>", RUN_MARK_TAKES_RIGHT, false);
        mark_text(tokenizer, "<s>", RUN_MARK_TAKES_RIGHT, false);
        mark_text(tokenizer, "<|endoftext|>", RUN_MARK_TAKES_RIGHT, false);
    } else if (contains(name, "modern-bert")) {
        mark_text(tokenizer, "[MASK]", RUN_MARK_TAKES_LEFT, true);
    }
}

int run_special_tokens_find(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                            struct run_failure *failure)
{
    const int code = read_ids(tokenizer, metadata, failure);

    if (code < 0)
        return code;
    find_ends(tokenizer);
    find_greedy(tokenizer, metadata);
    return 0;
}
