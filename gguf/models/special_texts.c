#include "gguf/models/special_texts.h"

#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof *(list))

const char *const gguf_turn_ends[] = {
    "<|eot_id|>",         "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>",    "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
    "<end_of_utterance>", NULL};

const char *const gguf_other_ends[] = {"<|return|>", "<|call|>",         "<|flush|>", "<|calls|>",
                                       "</s>",       "<|eom_id|>",       "[EOS]",     "<eos>",
                                       "<turn|>",    "<|tool_response>", "[e~[",      NULL};

const char *const gguf_filled_ends[] = {
    "<|fim_pad|>",   "<fim-pad>",  "<fim_pad>", "<PAD>",      "[PAD]",        "<|fim_repo|>",
    "<|repo_name|>", "<fim-repo>", "<REPO>",    "<reponame>", "<|file_sep|>", NULL};

const char *const gguf_shown_texts[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>",
                                        NULL};

/* Markers of the gap in prompts to code models. */
static const char *const gap_marks[] = {
    "<|fim_prefix|>", "<fim-prefix>",    "<fim_prefix>",    "<｜fim▁begin｜>", "<PRE>",
    "▁<PRE>",         "<|code_prefix|>", "<|prefix|>",      "<|fim_suffix|>",  "<fim-suffix>",
    "<fim_suffix>",   "<｜fim▁hole｜>",  "<SUF>",           "▁<SUF>",          "<|code_suffix|>",
    "<|suffix|>",     "<|fim_middle|>",  "<fim-middle>",    "<fim_middle>",    "<｜fim▁end｜>",
    "<MID>",          "▁<MID>",          "<|code_middle|>", "<|middle|>",      NULL};

void gguf_correct_token_types(uint8_t *types, gguf_token_finder *find, const void *vocabulary)
{
    static const char *const *const lists[] = {gguf_turn_ends, gguf_other_ends, gguf_filled_ends,
                                               gap_marks};
    const int32_t html = find(vocabulary, "</s>");
    const uint8_t html_type = html < 0 ? GGUF_TOKEN_UNDEFINED : types[html];

    for (size_t i = 0; i < COUNT(lists); i++) {
        for (const char *const *text = lists[i]; *text; text++) {
            const int32_t id = find(vocabulary, *text);

            if (id >= 0)
                types[id] = GGUF_TOKEN_CONTROL;
        }
    }
    for (const char *const *text = gguf_shown_texts; *text; text++) {
        const int32_t id = find(vocabulary, *text);

        /* It stays out of input unless the file calls it user-defined. */
        if (id >= 0 && types[id] != GGUF_TOKEN_USER_DEFINED)
            types[id] = GGUF_TOKEN_CONTROL;
    }
    /* In Gemma 4, this is HTML. */
    if (html >= 0 && find(vocabulary, "<|tool_response>") >= 0)
        types[html] = html_type == GGUF_TOKEN_CONTROL ? GGUF_TOKEN_CONTROL : GGUF_TOKEN_NORMAL;
}

/* ---- white space ---- */

struct gguf_strip_rule {
    const char *left;      /* a token that strips on its left; NULL: none */
    bool is_right;         /* special tokens strip on their right … */
    const char *except[3]; /* … but not these */
};

static const struct gguf_strip_rule jina = {.left = "<mask>"};
static const struct gguf_strip_rule modern_bert = {.left = "[MASK]"};
static const struct gguf_strip_rule phi3 = {.is_right = true,
                                            .except = {"<unk>", "<s>", "<|endoftext|>"}};

/* Return true if `text` contains `part`, ignoring ASCII case. */
static bool contains(const char *text, const char *part)
{
    return text && strcasestr(text, part) != NULL;
}

const struct gguf_strip_rule *gguf_strip_rule_find(const char *name, const char *pre,
                                                   const char *architecture)
{
    if (contains(pre, "jina-v2-de") || contains(pre, "jina-v2-es") ||
        contains(pre, "jina-v2-code") || contains(architecture, "nomic-bert-moe") ||
        contains(architecture, "jina-bert-v3"))
        return &jina;
    if (contains(name, "phi-3") || contains(name, "phi3"))
        return &phi3;
    return contains(name, "modern-bert") ? &modern_bert : NULL;
}

static bool is_text(const char *text, size_t length, const char *other)
{
    return other && strlen(other) == length && memcmp(text, other, length) == 0;
}

unsigned gguf_strips(const struct gguf_strip_rule *rule, const char *text, size_t length,
                     enum gguf_token_type type)
{
    const bool is_special =
        gguf_token_type_is_control((uint8_t)type) || type == GGUF_TOKEN_USER_DEFINED;

    if (!rule)
        return 0;
    if (is_text(text, length, rule->left))
        return GGUF_STRIP_LEFT;
    if (!rule->is_right)
        return 0;
    for (size_t i = 0; i < COUNT(rule->except); i++)
        if (is_text(text, length, rule->except[i]))
            return 0;
    return is_special || is_text(text, length, "</s>") ? GGUF_STRIP_RIGHT : 0;
}
