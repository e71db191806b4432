/*
 * The kind "bert": WordPiece. The text is cleaned and split into words, punctuation marks and
 * ideographs; each of these is split from the left into the longest tokens. In GGUF, a token at the
 * start of a word begins with U+2581, and the others have no prefix (not ##).
 *
 * Characters are treated as in BertNormalizer and BertPreTokenizer of huggingface/tokenizers.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <unicase.h>
#include <uninorm.h>
#include <unictype.h>

#define KEY "tokenizer.ggml.normalizer."

/* A longer word is unknown: max_input_chars_per_word of all known models. */
#define MAX_WORD_CHARACTERS 100

/* No character decomposes into more. */
#define MAX_DECOMPOSED 32

int run_wordpiece_open(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                       struct run_failure *failure)
{
    tokenizer->is_lowered = run_metadata_is_true(metadata, KEY "lowercase", true);
    tokenizer->is_stripped =
        run_metadata_is_true(metadata, KEY "strip_accents", tokenizer->is_lowered);
    gguf_special_ids_complete(&tokenizer->special, tokenizer->kind->model, NULL, false,
                              GGUF_NO_TOKEN);
    return 0;
}

struct encoding {
    const struct run_tokenizer *tokenizer;
    struct run_ids *ids;
    struct gguf_buffer word; /* begins with U+2581 */
    size_t n_characters;
};

/* End the word: append its tokens, or the unknown token. */
static void end_word(struct encoding *encoding)
{
    const struct run_tokenizer *tokenizer = encoding->tokenizer;
    const struct gguf_buffer *word = &encoding->word;
    const size_t n_before = encoding->ids->n;

    for (size_t at = 0; encoding->n_characters > 0 && at < word->length;) {
        const struct run_prefix *token =
            run_prefix_trie_longest(&tokenizer->tokens, word->bytes + at, word->length - at, NULL);

        if (!token || encoding->n_characters > MAX_WORD_CHARACTERS) {
            encoding->ids->n = n_before;
            if (tokenizer->special.unk >= 0)
                run_ids_add(encoding->ids, tokenizer->special.unk);
            break;
        }
        run_ids_add(encoding->ids, token->id);
        at += token->length;
    }
    encoding->n_characters = 0;
}

static int add_character(struct encoding *encoding, uint32_t code)
{
    if (encoding->n_characters++ == 0) {
        encoding->word.length = 0;
        if (gguf_buffer_add_string(&encoding->word, GGUF_SPACE_MARK) < 0)
            return -ENOMEM;
    }
    return run_character_add(&encoding->word, code);
}

static bool is_ideograph(uint32_t code)
{
    /* In Unicode, the range from U+2B920 begins at U+2B820; models were trained with this one. */
    return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
           (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b73f) ||
           (code >= 0x2b740 && code <= 0x2b81f) || (code >= 0x2b920 && code <= 0x2ceaf) ||
           (code >= 0xf900 && code <= 0xfaff) || (code >= 0x2f800 && code <= 0x2fa1f);
}

static bool is_punctuation(uint32_t code)
{
    const uint32_t category = uc_general_category(run_character_stand_in(code)).bitmask;

    return category & UC_CATEGORY_MASK_P || (code < 0x80 && category & UC_CATEGORY_MASK_S);
}

/*
 * Append a character of the cleaned text, without accents and in lower case if the model wants
 * that.
 */
static int add_normal(struct encoding *encoding, uint32_t code, bool is_alone)
{
    const struct run_tokenizer *tokenizer = encoding->tokenizer;
    uint32_t parts[MAX_DECOMPOSED] = {code};
    size_t n = 1;
    int result = 0;

    if (tokenizer->is_stripped && code >= 0x80) {
        n = MAX_DECOMPOSED;
        if (u32_normalize(UNINORM_NFD, &code, 1, parts, &n) != parts)
            n = 0;
    }
    for (size_t i = 0; result == 0 && i < n; i++) {
        uint32_t part = parts[i];
        bool is_word;

        if (tokenizer->is_stripped && part >= 0x80 &&
            uc_is_general_category_withtable(part, UC_CATEGORY_MASK_Mn))
            continue;
        if (tokenizer->is_lowered)
            part = uc_tolower(part);
        is_word = is_alone || is_punctuation(part);
        if (is_word)
            end_word(encoding);
        result = add_character(encoding, part);
        if (is_word)
            end_word(encoding);
    }
    return result;
}

int run_wordpiece_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         struct run_ids *ids)
{
    struct encoding encoding = {.tokenizer = tokenizer, .ids = ids};
    int code = 0;

    for (size_t at = 0; code == 0 && at < length;) {
        const struct run_character character = run_character_decode(text, length, at);
        const uint32_t known = run_character_stand_in(character.code);
        const uint32_t category = uc_general_category(known).bitmask;
        const bool is_control = category & UC_CATEGORY_MASK_C && !(category & UC_CATEGORY_MASK_Cn);

        at += character.n_bytes;
        if (character.code == '\t' || character.code == '\r' || character.code == '\n' ||
            (uc_is_property_white_space(known) && !is_control))
            end_word(&encoding);
        else if (character.code != RUN_REPLACEMENT && !is_control)
            code = add_normal(&encoding, character.code, is_ideograph(character.code));
    }
    if (code == 0)
        end_word(&encoding);
    free(encoding.word.bytes);
    return code;
}
