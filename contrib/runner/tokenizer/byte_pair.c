/*
 * The kinds "gpt2" and "gemma4": byte-pair encoding. The pre-tokenizer splits the text into words;
 * in each, pairs of symbols merge in the order of the list of merges. The symbols of "gpt2" are
 * bytes, each written as a character; the symbols of "gemma4" are characters, with U+2581 for a
 * space.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

#define MAX_MERGES ((uint32_t)1 << 22)

/* ---- the list of merges ---- */

static bool is_text_token(const struct run_vocabulary *vocabulary, int32_t id)
{
    return id >= 0 && !run_vocabulary_is_control(vocabulary, (uint32_t)id);
}

struct merge_reading {
    struct run_tokenizer *tokenizer;
    struct gguf_buffer joined; /* reused */
    /* the merged token has this id if the ids of merges follow each other, as most do */
    uint32_t guess;
};

/* Add a merge, "LEFT RIGHT". Ignores other texts, and merges whose tokens text does not become. */
static int add_merge(struct merge_reading *reading, const char *text, size_t length, uint32_t rank)
{
    const struct run_vocabulary *vocabulary = &reading->tokenizer->vocabulary;
    struct gguf_buffer *joined = &reading->joined;
    const char *space = length > 1 ? memchr(text + 1, ' ', length - 1) : NULL;
    const size_t left_length = space ? (size_t)(space - text) : 0;
    const size_t right_length = space ? length - left_length - 1 : 0;
    struct run_merge merge = {.rank = rank};

    if (!space)
        return 0;
    joined->length = 0;
    if (gguf_buffer_add(joined, text, left_length) < 0 ||
        gguf_buffer_add(joined, space + 1, right_length) < 0)
        return -ENOMEM;
    if (vocabulary->is_unique && reading->guess < vocabulary->n &&
        run_vocabulary_is_text(vocabulary, reading->guess, joined->bytes, joined->length))
        merge.id = (int32_t)reading->guess;
    else
        merge.id = run_vocabulary_find(vocabulary, joined->bytes, joined->length);
    if (merge.id >= 0)
        reading->guess = (uint32_t)merge.id + 1;
    merge.left = run_vocabulary_find(vocabulary, text, left_length);
    merge.right = run_vocabulary_find(vocabulary, space + 1, right_length);
    if (is_text_token(vocabulary, merge.left) && is_text_token(vocabulary, merge.right) &&
        is_text_token(vocabulary, merge.id))
        run_merge_table_add(&reading->tokenizer->merges, &merge);
    return 0;
}

static int read_merges(struct run_tokenizer *tokenizer, const struct gguf_json *first,
                       struct run_failure *failure)
{
    struct merge_reading reading = {.tokenizer = tokenizer};
    uint32_t n = 0;
    int code;

    for (const struct gguf_json *merge = first; merge; merge = merge->next, n++) {
        if (merge->kind != GGUF_JSON_STRING)
            return run_fail(failure, -EINVAL, "metadata: " KEY "merges: element %u is not a string",
                            n);
        if (n == MAX_MERGES)
            return run_fail(failure, -E2BIG, "metadata: " KEY "merges: more than %u", MAX_MERGES);
    }
    code = run_merge_table_open(&tokenizer->merges, n);
    n = 0;
    for (const struct gguf_json *merge = first; code == 0 && merge; merge = merge->next, n++)
        code = add_merge(&reading, merge->text.data, merge->text.length_bytes, n);
    free(reading.joined.bytes);
    return code < 0 ? run_fail_memory(failure) : 0;
}

/* ---- opening ---- */

static void choose_pretokenizer(struct run_tokenizer *tokenizer,
                                const struct run_metadata *metadata)
{
    static const char end_of_text[] = "<|endoftext|>";
    const char *model = tokenizer->kind->model, *pre = run_metadata_string(metadata, KEY "pre");
    enum gguf_pretokenizer_origin origin;

    tokenizer->pretokenizer =
        gguf_pretokenizer_choose(model, pre, run_metadata_architecture(metadata), &origin);
    if (origin == GGUF_PRE_MISSING)
        run_tokenizer_add_note(tokenizer, "no " KEY "pre: text is split as for \"default\", which "
                                          "may not be what the model was trained on");
    if (origin == GGUF_PRE_UNKNOWN)
        run_tokenizer_add_note(tokenizer,
                               KEY "pre: %.64s is unknown: text is split as for \"smaug-bpe\", "
                                   "which may not be what the model was trained on",
                               pre);
    gguf_special_ids_complete(
        &tokenizer->special, model, tokenizer->pretokenizer,
        run_metadata_has(metadata, KEY "add_bos_token"),
        run_vocabulary_find(&tokenizer->vocabulary, end_of_text, sizeof end_of_text - 1));
}

static void find_bytes(struct run_tokenizer *tokenizer)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char character[2];
        const size_t length = gguf_alphabet_put((unsigned char)byte, character);
        const int32_t id = run_vocabulary_find(&tokenizer->vocabulary, character, length);

        tokenizer->bytes[byte] = is_text_token(&tokenizer->vocabulary, id) ? id : RUN_NO_TOKEN;
    }
}

int run_byte_pair_open(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                       struct run_failure *failure)
{
    const struct gguf_json *merges;
    struct run_json json;
    int code;

    choose_pretokenizer(tokenizer, metadata);
    if (tokenizer->pretokenizer->is_raw) {
        tokenizer->decode = gguf_space_marks_decode;
        run_vocabulary_find_bytes(&tokenizer->vocabulary, tokenizer->bytes);
    } else {
        find_bytes(tokenizer);
    }
    if (run_pre_tokenizer_open(tokenizer->pretokenizer, &tokenizer->splitter) < 0)
        return run_fail_memory(failure);
    code = run_metadata_array(metadata, KEY "merges", &json, &merges, failure);
    if (merges)
        code = read_merges(tokenizer, merges->child, failure);
    else if (code == 0 && !tokenizer->pretokenizer->is_merge_optional)
        run_tokenizer_add_note(tokenizer,
                               "no " KEY "merges: tokens are merged in the order of their ids");
    run_json_free(&json);
    return code;
}

/* ---- encoding ---- */

struct encoding {
    const struct run_tokenizer *tokenizer;
    struct run_ids *ids;
    struct run_merger merger;
    struct gguf_buffer word; /* in the vocabulary's notation */
};

/* Split the word into symbols: characters that are in the vocabulary, or else bytes. */
static void add_raw_symbols(struct encoding *encoding)
{
    const struct run_tokenizer *tokenizer = encoding->tokenizer;
    const struct gguf_buffer *word = &encoding->word;

    for (size_t at = 0, n; at < word->length; at += n) {
        int32_t id;

        n = run_character_decode(word->bytes, word->length, at).n_bytes;
        id = run_vocabulary_find_text(&tokenizer->vocabulary, word->bytes + at, n);
        if (id >= 0)
            run_merger_add(&encoding->merger, at, n, id);
        for (size_t i = 0; id < 0 && i < n; i++)
            run_merger_add(&encoding->merger, at + i, 1,
                           tokenizer->bytes[(unsigned char)word->bytes[at + i]]);
    }
}

/* Append the word in GPT-2's alphabet, and its bytes as symbols. */
static int add_byte_symbols(struct encoding *encoding, const char *text, size_t length)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        char character[2];
        const size_t n = gguf_alphabet_put(byte, character);

        run_merger_add(&encoding->merger, encoding->word.length, n,
                       encoding->tokenizer->bytes[byte]);
        code = gguf_buffer_add(&encoding->word, character, n);
    }
    return code;
}

static int encode_word(void *context, const char *text, size_t length)
{
    struct encoding *encoding = context;
    const struct run_tokenizer *tokenizer = encoding->tokenizer;
    const struct gguf_pretokenizer *pretokenizer = tokenizer->pretokenizer;
    const struct run_symbol *symbols;
    int code = run_merger_begin(&encoding->merger, length);

    encoding->word.length = 0;
    if (code == 0)
        code = pretokenizer->is_raw ? gguf_buffer_add(&encoding->word, text, length)
                                    : add_byte_symbols(encoding, text, length);
    if (code < 0)
        return code;
    if (pretokenizer->is_merging_ignored || (pretokenizer->is_raw && text[0] == '\n')) {
        const int32_t id = run_vocabulary_find_text(&tokenizer->vocabulary, encoding->word.bytes,
                                                    encoding->word.length);

        if (id >= 0)
            return run_ids_add(encoding->ids, id);
    }
    if (pretokenizer->is_raw)
        add_raw_symbols(encoding);
    run_merger_merge(&encoding->merger, tokenizer, encoding->word.bytes);
    symbols = encoding->merger.symbols;
    for (int32_t i = 0; i >= 0; i = symbols[i].next)
        if (symbols[i].id >= 0)
            run_ids_add(encoding->ids, symbols[i].id);
    return 0;
}

int run_byte_pair_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         struct run_ids *ids)
{
    struct encoding encoding = {.tokenizer = tokenizer, .ids = ids};
    struct gguf_buffer marked = {0};
    int code = 0;

    if (tokenizer->pretokenizer->is_raw) {
        code = run_text_add_marked(&marked, text, length);
        text = marked.bytes;
        length = marked.length;
    }
    if (code == 0)
        code = run_pre_tokenizer_split(&tokenizer->splitter, text, length, encode_word, &encoding);
    run_merger_free(&encoding.merger);
    free(encoding.word.bytes);
    free(marked.bytes);
    return code;
}
