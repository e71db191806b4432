/*
 * The kind "bert": WordPiece. The text is cleaned and split into words, punctuation marks and
 * ideographs; each of these is split from the left into the longest tokens. In GGUF, a token at the
 * start of a word begins with U+2581, and the others have no prefix (not ##).
 *
 * Characters are treated as in BertNormalizer and BertPreTokenizer of huggingface/tokenizers.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "contrib/runner/tokenizer/utf8_stream.h"

#include <stdlib.h>
#include <unicase.h>
#include <uninorm.h>
#include <unictype.h>

#define KEY "tokenizer.ggml.normalizer."

/* A longer word is unknown: max_input_chars_per_word of all known models. */
#define MAX_WORD_CHARACTERS 100

/* No character decomposes into more. */
#define MAX_DECOMPOSED 32

struct wordpiece {
    struct run_prefix_trie tokens;
    bool is_lowered;
    bool is_stripped; /* accents are removed */
};

static int open_wordpiece(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                          struct run_failure *failure)
{
    const struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct wordpiece *state = calloc(1, sizeof *state);

    tokenizer->state = state;
    if (!state)
        return run_fail_memory(failure);
    state->is_lowered = run_metadata_is_true(metadata, KEY "lowercase", true);
    state->is_stripped = run_metadata_is_true(metadata, KEY "strip_accents", state->is_lowered);
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if (run_vocabulary_is_control(vocabulary, id))
            continue;
        if (run_prefix_trie_add(&state->tokens, text, length, (int32_t)id) < 0)
            return run_fail_memory(failure);
    }
    run_prefix_trie_sort(&state->tokens);
    gguf_special_ids_complete(&tokenizer->special, tokenizer->kind->model, NULL, false,
                              GGUF_NO_TOKEN);
    return 0;
}

static void close_wordpiece(void *state)
{
    struct wordpiece *wordpiece = state;

    run_prefix_trie_free(&wordpiece->tokens);
    free(wordpiece);
}

struct encoding {
    const struct run_tokenizer *tokenizer;
    struct run_ids *ids;
    struct gguf_buffer word; /* begins with U+2581 */
    size_t n_characters;
};

/* End the word: append its tokens, or the unknown token. */
static int end_word(struct encoding *encoding)
{
    const struct wordpiece *state = encoding->tokenizer->state;
    const struct gguf_buffer *word = &encoding->word;
    const size_t n_before = encoding->ids->n;
    int code = 0;

    if (encoding->n_characters == 0)
        return 0;
    for (size_t at = 0; code == 0 && at < word->length;) {
        const struct run_prefix *token =
            run_prefix_trie_longest(&state->tokens, word->bytes + at, word->length - at, NULL);

        if (!token || encoding->n_characters > MAX_WORD_CHARACTERS) {
            encoding->ids->n = n_before;
            if (encoding->tokenizer->special.unk >= 0)
                code = run_ids_add(encoding->ids, encoding->tokenizer->special.unk);
            break;
        }
        code = run_ids_add(encoding->ids, token->id);
        at += token->length;
    }
    encoding->n_characters = 0;
    return code;
}

static int add_character(struct encoding *encoding, uint32_t code)
{
    char utf8[RUN_UTF8_BYTES];
    int result = 0;

    if (encoding->n_characters++ == 0) {
        encoding->word.length = 0;
        result = gguf_buffer_add(&encoding->word, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
    }
    if (result == 0)
        result = gguf_buffer_add(&encoding->word, utf8, run_character_encode(code, utf8));
    return result;
}

/* Append a character as a word of its own. */
static int add_alone(struct encoding *encoding, uint32_t code)
{
    int result = end_word(encoding);

    if (result == 0)
        result = add_character(encoding, code);
    return result < 0 ? result : end_word(encoding);
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
    const unsigned classes = run_character_classes(code);

    return classes & RUN_PUNCTUATION || (code < 0x80 && classes & RUN_SYMBOL);
}

/*
 * Append a character of the cleaned text, without accents and in lower case if the model wants
 * that.
 */
static int add_normal(struct encoding *encoding, uint32_t code, bool is_alone)
{
    const struct wordpiece *state = encoding->tokenizer->state;
    uint32_t parts[MAX_DECOMPOSED] = {code};
    size_t n = 1;
    int result = 0;

    if (state->is_stripped && code >= 0x80) {
        n = MAX_DECOMPOSED;
        if (u32_normalize(UNINORM_NFD, &code, 1, parts, &n) != parts)
            n = 0;
    }
    for (size_t i = 0; result == 0 && i < n; i++) {
        uint32_t part = parts[i];

        if (state->is_stripped && part >= 0x80 &&
            uc_is_general_category_withtable(part, UC_CATEGORY_MASK_Mn))
            continue;
        if (state->is_lowered)
            part = uc_tolower(part);
        result = is_alone || is_punctuation(part) ? add_alone(encoding, part)
                                                  : add_character(encoding, part);
    }
    return result;
}

static int encode_wordpiece(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                            bool is_first, struct run_ids *ids)
{
    struct encoding encoding = {.tokenizer = tokenizer, .ids = ids};
    int code = 0;

    (void)is_first;
    for (size_t at = 0; code == 0 && at < length;) {
        const struct run_character character = run_character_decode(text, length, at);
        const unsigned classes = run_character_classes(character.code);
        const bool is_blank = character.code == '\t' || character.code == '\r' ||
                              character.code == '\n' ||
                              (classes & RUN_SPACE && !(classes & RUN_CONTROL));

        at += character.n_bytes;
        if (is_blank)
            code = end_word(&encoding);
        else if (character.code != RUN_REPLACEMENT && !(classes & RUN_CONTROL))
            code = add_normal(&encoding, character.code, is_ideograph(character.code));
    }
    if (code == 0)
        code = end_word(&encoding);
    free(encoding.word.bytes);
    return code;
}

const struct run_tokenizer_kind run_kind_bert = {
    .model = "bert",
    .open = open_wordpiece,
    .close = close_wordpiece,
    .encode = encode_wordpiece,
    .decode = run_decode_space_marks,
};
