/*
 * The kinds "gpt2" and "gemma4": byte-pair encoding. The pre-tokenizer splits the text into words;
 * in each, pairs of symbols merge in the order of the list of merges. The symbols of "gpt2" are
 * bytes, each written as a character; the symbols of "gemma4" are characters, with U+2581 for a
 * space.
 */
#include "contrib/runner/tokenizer/bpe.h"
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/merge_table.h"
#include "contrib/runner/tokenizer/pre_tokenizer.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "gguf/models/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

#define MAX_MERGES ((uint32_t)1 << 22)

struct byte_pair {
    const struct gguf_pretokenizer *pretokenizer;
    struct run_pre_tokenizer *splitter;
    struct run_merge_table merges;
    bool has_merges;    /* if false, tokens merge in the order of their ids */
    int32_t bytes[256]; /* the tokens of single bytes */
};

/* ---- the list of merges ---- */

static bool is_text_token(const struct run_vocabulary *vocabulary, int32_t id)
{
    return id >= 0 && !run_vocabulary_is_control(vocabulary, (uint32_t)id);
}

struct merge_reading {
    struct byte_pair *bpe;
    const struct run_vocabulary *vocabulary;
    struct gguf_buffer joined; /* reused */
    /* the merged token has this id if the ids of merges follow each other, as most do */
    uint32_t guess;
};

/* Add a merge, "LEFT RIGHT". Ignores other texts, and merges whose tokens text does not become. */
static int add_merge(struct merge_reading *reading, const char *text, size_t length, uint32_t rank)
{
    const struct run_vocabulary *vocabulary = reading->vocabulary;
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
    if (!is_text_token(vocabulary, merge.left) || !is_text_token(vocabulary, merge.right) ||
        !is_text_token(vocabulary, merge.id))
        return 0;
    return run_merge_table_add(&reading->bpe->merges, &merge);
}

static int take_merge(void *context, uint32_t rank, const struct gguf_json *merge,
                      struct run_failure *failure)
{
    if (merge->kind != GGUF_JSON_STRING)
        return run_fail(failure, -EINVAL, "metadata: " KEY "merges: element %u is not a string",
                        rank);
    if (rank == MAX_MERGES)
        return run_fail(failure, -E2BIG, "metadata: " KEY "merges: more than %u", MAX_MERGES);
    return add_merge(context, merge->text.data, merge->text.length_bytes, rank) < 0
               ? run_fail_memory(failure)
               : 1;
}

/* ---- opening ---- */

static void choose_pretokenizer(struct run_tokenizer *tokenizer,
                                const struct run_metadata *metadata)
{
    static const char end_of_text[] = "<|endoftext|>";
    const char *model = tokenizer->kind->model, *pre = run_metadata_string(metadata, KEY "pre");
    struct byte_pair *bpe = tokenizer->state;
    enum gguf_pretokenizer_origin origin;

    bpe->pretokenizer =
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
        &tokenizer->special, model, bpe->pretokenizer,
        run_metadata_has(metadata, KEY "add_bos_token"),
        run_vocabulary_find(&tokenizer->vocabulary, end_of_text, sizeof end_of_text - 1));
}

static void find_bytes(const struct run_tokenizer *tokenizer, struct byte_pair *bpe)
{
    if (bpe->pretokenizer->is_raw) {
        run_vocabulary_find_bytes(&tokenizer->vocabulary, bpe->bytes);
        return;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        char character[2];
        const size_t length = gguf_alphabet_put((unsigned char)byte, character);

        bpe->bytes[byte] = run_vocabulary_find(&tokenizer->vocabulary, character, length);
        if (!is_text_token(&tokenizer->vocabulary, bpe->bytes[byte]))
            bpe->bytes[byte] = RUN_NO_TOKEN;
    }
}

static int open_byte_pair(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                          struct run_failure *failure)
{
    struct byte_pair *bpe = calloc(1, sizeof *bpe);
    struct merge_reading reading = {.bpe = bpe, .vocabulary = &tokenizer->vocabulary};
    int code;

    tokenizer->state = bpe;
    if (!bpe)
        return run_fail_memory(failure);
    choose_pretokenizer(tokenizer, metadata);
    find_bytes(tokenizer, bpe);
    code = run_pre_tokenizer_open(bpe->pretokenizer, &bpe->splitter, failure);
    if (code < 0)
        return code;
    bpe->has_merges = run_metadata_has(metadata, KEY "merges");
    if (!bpe->has_merges && !bpe->pretokenizer->is_merge_optional)
        run_tokenizer_add_note(tokenizer,
                               "no " KEY "merges: tokens are merged in the order of their ids");
    if (bpe->has_merges && run_merge_table_open(&bpe->merges, tokenizer->vocabulary.n) < 0)
        return run_fail_memory(failure);
    code = run_metadata_each(metadata, KEY "merges", take_merge, &reading, failure);
    free(reading.joined.bytes);
    return code;
}

static void close_byte_pair(void *state)
{
    struct byte_pair *bpe = state;

    run_pre_tokenizer_close(bpe->splitter);
    run_merge_table_close(&bpe->merges);
    free(bpe);
}

/* ---- encoding ---- */

struct encoding {
    const struct run_tokenizer *tokenizer;
    struct run_ids *ids;
    struct run_merger merger;
    struct gguf_buffer word; /* in the vocabulary's notation */
};

static bool find_pair(const void *context, const char *text, const struct run_symbol *left,
                      const struct run_symbol *right, uint32_t *rank, int32_t *id)
{
    const struct run_tokenizer *tokenizer = context;
    const struct byte_pair *bpe = tokenizer->state;

    if (bpe->has_merges) {
        const struct run_merge *merge =
            left->id < 0 || right->id < 0 ? NULL
                                          : run_merge_table_find(&bpe->merges, left->id, right->id);

        if (!merge)
            return false;
        *rank = merge->rank;
        *id = merge->id;
        return true;
    }
    *id = run_vocabulary_find_text(&tokenizer->vocabulary, text + left->start,
                                   (size_t)left->length + right->length);
    *rank = (uint32_t)*id;
    return *id >= 0;
}

/* Split the word into symbols: characters that are in the vocabulary, or else bytes. */
static int add_raw_symbols(struct encoding *encoding)
{
    const struct byte_pair *bpe = encoding->tokenizer->state;
    const struct gguf_buffer *word = &encoding->word;
    int code = 0;

    for (size_t at = 0; code == 0 && at < word->length;) {
        const size_t n = run_character_decode(word->bytes, word->length, at).n_bytes;
        const int32_t id =
            run_vocabulary_find_text(&encoding->tokenizer->vocabulary, word->bytes + at, n);

        if (id >= 0)
            code = run_merger_add(&encoding->merger, at, n, id);
        for (size_t i = 0; id < 0 && code == 0 && i < n; i++)
            code = run_merger_add(&encoding->merger, at + i, 1,
                                  bpe->bytes[(unsigned char)word->bytes[at + i]]);
        at += n;
    }
    return code;
}

/* Append the word in GPT-2's alphabet, and its bytes as symbols. */
static int add_byte_symbols(struct encoding *encoding, const char *text, size_t length)
{
    const struct byte_pair *bpe = encoding->tokenizer->state;
    int code = 0;

    for (size_t i = 0; code == 0 && i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        char character[2];
        const size_t n = gguf_alphabet_put(byte, character);

        code = run_merger_add(&encoding->merger, encoding->word.length, n, bpe->bytes[byte]);
        if (code == 0)
            code = gguf_buffer_add(&encoding->word, character, n);
    }
    return code;
}

static int encode_word(void *context, const char *text, size_t length)
{
    struct encoding *encoding = context;
    const struct byte_pair *bpe = encoding->tokenizer->state;
    const bool is_raw = bpe->pretokenizer->is_raw;
    int code;

    run_merger_begin(&encoding->merger);
    encoding->word.length = 0;
    code = is_raw ? gguf_buffer_add(&encoding->word, text, length)
                  : add_byte_symbols(encoding, text, length);
    if (code == 0 && (bpe->pretokenizer->is_merging_ignored || (is_raw && text[0] == '\n'))) {
        const int32_t id = run_vocabulary_find_text(&encoding->tokenizer->vocabulary,
                                                    encoding->word.bytes, encoding->word.length);

        if (id >= 0)
            return run_ids_add(encoding->ids, id);
    }
    if (code == 0 && is_raw)
        code = add_raw_symbols(encoding);
    if (code == 0)
        code = run_merger_merge(&encoding->merger, encoding->word.bytes, find_pair,
                                encoding->tokenizer);
    for (int32_t i = 0; code == 0 && i >= 0; i = encoding->merger.symbols[i].next)
        if (encoding->merger.symbols[i].id >= 0)
            code = run_ids_add(encoding->ids, encoding->merger.symbols[i].id);
    return code;
}

static int encode_byte_pair(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                            bool is_first, struct run_ids *ids)
{
    const struct byte_pair *bpe = tokenizer->state;
    struct encoding encoding = {.tokenizer = tokenizer, .ids = ids};
    struct gguf_buffer marked = {0};
    int code = 0;

    (void)is_first;
    if (bpe->pretokenizer->is_raw) {
        code = run_text_add_marked(&marked, text, length);
        text = marked.bytes;
        length = marked.length;
    }
    if (code == 0)
        code = run_pre_tokenizer_split(bpe->splitter, text, length, encode_word, &encoding);
    run_merger_free(&encoding.merger);
    free(encoding.word.bytes);
    free(marked.bytes);
    return code;
}

static size_t decode_byte_pair(const struct run_tokenizer *tokenizer, const char *text,
                               size_t length, char *out)
{
    const struct byte_pair *bpe = tokenizer->state;

    if (bpe->pretokenizer->is_raw)
        return gguf_space_marks_decode(text, length, out);
    return gguf_alphabet_decode(text, length, out);
}

const struct run_tokenizer_kind run_kind_gpt2 = {
    .model = "gpt2",
    .open = open_byte_pair,
    .close = close_byte_pair,
    .encode = encode_byte_pair,
    .decode = decode_byte_pair,
};

const struct run_tokenizer_kind run_kind_gemma4 = {
    .model = "gemma4",
    .open = open_byte_pair,
    .close = close_byte_pair,
    .encode = encode_byte_pair,
    .decode = decode_byte_pair,
};
