#include "gguf/models/tokens.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

const char *gguf_token_type_name(uint64_t type)
{
    static const char *const names[] = {"undefined",    "normal", "unknown", "control",
                                        "user_defined", "unused", "byte"};

    return type < sizeof names / sizeof *names ? names[type] : NULL;
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool gguf_byte_token_parse(const char *text, size_t length, uint8_t *byte)
{
    if (length != GGUF_BYTE_TOKEN_BYTES || memcmp(text, "<0x", 3) != 0 || text[5] != '>' ||
        digit_value(text[3]) < 0 || digit_value(text[4]) < 0)
        return false;
    *byte = (uint8_t)(16 * digit_value(text[3]) + digit_value(text[4]));
    return true;
}

size_t gguf_space_marks_decode(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        if (length - i >= GGUF_SPACE_MARK_BYTES &&
            memcmp(text + i, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES) == 0) {
            out[n++] = ' ';
            i += GGUF_SPACE_MARK_BYTES - 1;
        } else {
            out[n++] = text[i];
        }
    }
    return n;
}

/* Digits that are none count as 0. */
static unsigned digit(char c)
{
    const int value = digit_value(c);

    return value < 0 ? 0 : (unsigned)value;
}

size_t gguf_token_unescape(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        char c = text[i];

        if (c == '\\' && i + 1 < length) {
            c = text[++i];
            if (c == 't')
                c = '\t';
            else if (c == 'n')
                c = '\n';
            else if (c == 'r')
                c = '\r';
            else if (c == 'x' && i + 2 < length) {
                c = (char)(digit(text[i + 1]) << 4 | digit(text[i + 2]));
                i += 2;
            }
        }
        out[n++] = c;
    }
    return n;
}

/* ---- GPT-2's alphabet ---- */

static bool is_visible(unsigned byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
}

/* Invisible bytes: 00 to 20 map to U+0100 and up, 7F to A0 to U+0121 and up, AD to U+0143. */
static unsigned character_of(unsigned byte)
{
    if (is_visible(byte))
        return byte;
    if (byte <= ' ')
        return 0x100 + byte;
    return byte == 0xad ? 0x143 : 0x121 + (byte - 0x7f);
}

/* Return the byte of a character, or -1. */
static int byte_of(unsigned character)
{
    if (character < 0x100)
        return is_visible(character) ? (int)character : -1;
    if (character <= 0x120)
        return (int)(character - 0x100);
    if (character <= 0x142)
        return (int)(character - 0x121 + 0x7f);
    return character == 0x143 ? 0xad : -1;
}

size_t gguf_alphabet_put(unsigned char byte, char out[2])
{
    const unsigned character = character_of(byte);

    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    out[0] = (char)(0xc0 | character >> 6);
    out[1] = (char)(0x80 | (character & 0x3f));
    return 2;
}

size_t gguf_alphabet_decode(const char *text, size_t length, char *out)
{
    size_t n = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned character = (unsigned char)text[i];
        int byte;

        if (character >= 0xc2 && character < 0xe0 && i + 1 < length &&
            ((unsigned char)text[i + 1] & 0xc0) == 0x80)
            character = (character & 0x1f) << 6 | ((unsigned char)text[++i] & 0x3f);
        else if (character >= 0x80)
            character = 0; /* longer, or not UTF-8: not in the alphabet */
        byte = byte_of(character);
        if (byte < 0) {
            memcpy(out, text, length);
            return length;
        }
        out[n++] = (char)byte;
    }
    return n;
}

/* ---- special tokens ---- */

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
                                               gap_marks, gguf_shown_texts};
    const int32_t html = find(vocabulary, "</s>");
    const uint8_t html_type = html < 0 ? GGUF_TOKEN_UNDEFINED : types[html];

    for (size_t i = 0; i < COUNT(lists); i++) {
        for (const char *const *text = lists[i]; *text; text++) {
            const int32_t id = find(vocabulary, *text);

            /* A shown text stays out of input unless the file calls it user-defined. */
            if (id >= 0 && (lists[i] != gguf_shown_texts || types[id] != GGUF_TOKEN_USER_DEFINED))
                types[id] = GGUF_TOKEN_CONTROL;
        }
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

/* ---- ids ---- */

#define KEY   "tokenizer.ggml."
#define ID(n) offsetof(struct gguf_special_ids, n)

const struct gguf_special_key gguf_special_keys[GGUF_N_SPECIAL_KEYS] = {
    {KEY "cls_token_id", ID(bos)},       {KEY "bos_token_id", ID(bos)},
    {KEY "eos_token_id", ID(eos)},       {KEY "eot_token_id", ID(eot)},
    {KEY "eom_token_id", ID(eom)},       {KEY "unknown_token_id", ID(unk)},
    {KEY "seperator_token_id", ID(sep)}, /* GGUF's spelling */
    {KEY "padding_token_id", ID(pad)},   {KEY "mask_token_id", ID(mask)},
};

#define NONE GGUF_NO_TOKEN
/* No kind has a default for eot and eom. */
#define IDS(bos_, eos_, unk_, sep_, pad_, mask_)                                                   \
    .bos = (bos_), .eos = (eos_), .eot = NONE, .eom = NONE, .unk = (unk_), .sep = (sep_),          \
    .pad = (pad_), .mask = (mask_)

/* The first model of each kind has these ids, as in llama.cpp. */
static const struct gguf_tokenizer_defaults defaults[] = {
    {.model = "llama",
     .ids = {IDS(1, 2, 0, NONE, NONE, NONE), .is_bos_added = true},
     .is_space_added = true},
    {.model = "bert", .ids = {IDS(101, NONE, 100, 102, 0, 103)}},
    {.model = "t5", .ids = {IDS(NONE, 1, 2, NONE, 0, NONE), .is_eos_added = true}},
    {.model = "plamo2", .ids = {IDS(1, 2, 0, NONE, 3, NONE)}},
    {.model = NULL, .ids = {IDS(NONE, NONE, NONE, NONE, NONE, NONE)}}, /* any other */
};

const struct gguf_tokenizer_defaults *gguf_tokenizer_defaults_find(const char *model)
{
    const struct gguf_tokenizer_defaults *row = defaults;

    while (row->model && strcmp(row->model, model) != 0)
        row++;
    return row;
}

void gguf_special_ids_complete(struct gguf_special_ids *ids, const char *model,
                               const struct gguf_pretokenizer *pretokenizer, bool has_add_bos_key,
                               int32_t end_of_text)
{
    /* Put every text between CLS and SEP. */
    if (strcmp(model, "bert") == 0) {
        ids->is_bos_added = ids->is_eos_added = true;
        if (ids->sep >= 0)
            ids->eos = ids->sep;
    }
    if (!pretokenizer)
        return;
    if (pretokenizer->is_always_bos || (pretokenizer->is_bos_added && !has_add_bos_key))
        ids->is_bos_added = true;
    /* Files without these ids are GPT-2's or Falcon's, which use one token at both ends. */
    if (!pretokenizer->is_raw && ids->bos < 0)
        ids->bos = end_of_text;
    if (!pretokenizer->is_raw && ids->eos < 0)
        ids->eos = end_of_text;
}
