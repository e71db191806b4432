/*
 * The kinds "gpt2" and "gemma4": byte-pair encoding. The pre-tokenizer splits the text into words;
 * in each, pairs of symbols merge in the order of the list of merges. The symbols of "gpt2" are
 * bytes, each written as a character; those of "gemma4" are characters, with U+2581 for a space.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/merge_table.h"
#include "contrib/runner/tokenizer/symbol_merging.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"
#include "contrib/runner/tokenizer/word_splitter.h"
#include "gguf/support/conventions/byte_alphabet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KEY "tokenizer.ggml."

#define MAX_MERGES ((uint32_t)1 << 22)

struct byte_pair {
    const struct gguf_pretokenizer *pretokenizer;
    struct run_word_splitter *splitter;
    struct run_merge_table merges;
    bool has_merges;    /* if false, tokens merge in the order of their ids */
    int32_t bytes[256]; /* the tokens of single bytes */
};

/* ---- the list of merges ---- */

static bool is_text_token(const struct run_vocabulary *vocabulary, int32_t id)
{
    return id >= 0 && !run_vocabulary_is_control(vocabulary, (uint32_t)id);
}

/*
 * Merges are looked up and added in steps with others between them, because each step needs what
 * the one before has the CPU load.
 */
enum { N_AHEAD = 16 };

/* A merge of which the texts have been hashed. */
struct hashed_merge {
    struct run_text joined; /* "LEFTRIGHT" */
    size_t left_length;
    uint64_t left_hash, right_hash;
    uint64_t joined_hash; /* unless the token is known */
    int32_t id;           /* of the token with the joined text; -1: not known yet */
    uint32_t rank;
};

/* Merges in the order of the list, in each step of their way into the table. */
struct merge_reading {
    struct hashed_merge hashed[N_AHEAD];
    struct run_merge found[N_AHEAD]; /* an id of -1: not to be added */
    uint32_t n_hashed, n_found, n_added;
    int64_t guess; /* the next merge's token: most have consecutive ids */
};

static int add_oldest(struct merge_reading *reading, struct run_merge_table *merges)
{
    const struct run_merge *merge = &reading->found[reading->n_added++ % N_AHEAD];

    return merge->id >= 0 ? run_merge_table_add(merges, merge) : 0;
}

/* Return the token with the joined text, or -1. */
static int32_t find_joined(struct merge_reading *reading, const struct run_vocabulary *vocabulary,
                           const struct hashed_merge *hashed)
{
    int32_t id = hashed->id;

    if (id >= 0)
        return id;
    id = run_vocabulary_find_hashed(vocabulary, hashed->joined_hash, hashed->joined.bytes,
                                    hashed->joined.n);
    if (id >= 0)
        reading->guess = (int64_t)id + reading->n_hashed - reading->n_found;
    return id;
}

/* Find the tokens of the oldest merge. Ignores one whose tokens text does not become. */
static void find_oldest(struct merge_reading *reading, const struct run_vocabulary *vocabulary,
                        const struct run_merge_table *merges)
{
    const struct hashed_merge *hashed = &reading->hashed[reading->n_found % N_AHEAD];
    const char *right = hashed->joined.bytes + hashed->left_length;
    struct run_merge *merge = &reading->found[reading->n_found % N_AHEAD];

    *merge = (struct run_merge){
        .rank = hashed->rank,
        .left = run_vocabulary_find_hashed(vocabulary, hashed->left_hash, hashed->joined.bytes,
                                           hashed->left_length),
        .right = run_vocabulary_find_hashed(vocabulary, hashed->right_hash, right,
                                            hashed->joined.n - hashed->left_length),
        .id = find_joined(reading, vocabulary, hashed),
    };
    reading->n_found++;
    if (!is_text_token(vocabulary, merge->left) || !is_text_token(vocabulary, merge->right) ||
        !is_text_token(vocabulary, merge->id))
        merge->id = -1;
    else
        run_merge_table_load(merges, merge->left, merge->right);
}

/* Let merges go on until at most n_left of them are in a step. */
static int advance(struct merge_reading *reading, const struct run_vocabulary *vocabulary,
                   struct run_merge_table *merges, uint32_t n_left)
{
    int code = 0;

    while (code == 0 && reading->n_hashed - reading->n_found > n_left) {
        if (reading->n_found - reading->n_added == N_AHEAD)
            code = add_oldest(reading, merges);
        find_oldest(reading, vocabulary, merges);
    }
    while (code == 0 && n_left == 0 && reading->n_added < reading->n_found)
        code = add_oldest(reading, merges);
    return code;
}

/* Begin a merge, "LEFT RIGHT". Ignores another text. */
static int begin_merge(struct merge_reading *reading, const struct run_vocabulary *vocabulary,
                       const struct run_json_token *token, uint32_t rank)
{
    const char *text = token->text;
    const char *space = token->length > 1 ? memchr(text + 1, ' ', token->length - 1) : NULL;
    struct hashed_merge *hashed = &reading->hashed[reading->n_hashed % N_AHEAD];
    size_t right_length;

    if (!space)
        return 0;
    hashed->left_length = (size_t)(space - text);
    right_length = token->length - hashed->left_length - 1;
    hashed->joined.n = 0;
    if (run_text_add(&hashed->joined, text, hashed->left_length) < 0 ||
        run_text_add(&hashed->joined, space + 1, right_length) < 0)
        return -ENOMEM;
    hashed->left_hash = run_vocabulary_hash(vocabulary, text, hashed->left_length);
    hashed->right_hash = run_vocabulary_hash(vocabulary, space + 1, right_length);
    hashed->id = -1;
    hashed->rank = rank;
    if (vocabulary->is_unique && reading->guess < vocabulary->n &&
        run_vocabulary_is_text(vocabulary, (uint32_t)reading->guess, hashed->joined.bytes,
                               hashed->joined.n))
        hashed->id = (int32_t)reading->guess++;
    else
        hashed->joined_hash =
            run_vocabulary_hash(vocabulary, hashed->joined.bytes, hashed->joined.n);
    reading->n_hashed++;
    return 0;
}

static int read_merges(struct byte_pair *bpe, const struct run_vocabulary *vocabulary,
                       struct run_json *merges, struct run_failure *failure)
{
    struct merge_reading reading = {0};
    struct run_json_token merge;
    uint32_t rank = 0;
    int code = 1;

    bpe->has_merges = true;
    if (run_merge_table_open(&bpe->merges, vocabulary->n) < 0)
        return run_fail_memory(failure);
    while (code > 0 && (code = run_json_element(merges, &merge, failure)) > 0) {
        if (merge.kind != RUN_JSON_STRING)
            code = run_fail(failure, -EINVAL, "metadata: " KEY "merges: element %u is not a string",
                            rank);
        else if (rank == MAX_MERGES)
            code = run_fail(failure, -E2BIG, "metadata: " KEY "merges: more than %u", MAX_MERGES);
        else if (advance(&reading, vocabulary, &bpe->merges, N_AHEAD - 1) < 0 ||
                 begin_merge(&reading, vocabulary, &merge, rank++) < 0)
            code = run_fail_memory(failure);
    }
    if (code == 0 && advance(&reading, vocabulary, &bpe->merges, 0) < 0)
        code = run_fail_memory(failure);
    for (unsigned i = 0; i < N_AHEAD; i++)
        free(reading.hashed[i].joined.bytes);
    return code;
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
        run_tokenizer_set_note(tokenizer, "no " KEY "pre: text is split as for \"default\", which "
                                          "may not be what the model was trained on");
    if (origin == GGUF_PRE_UNKNOWN)
        run_tokenizer_set_note(tokenizer,
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
    struct run_json *merges;
    int code;

    tokenizer->state = bpe;
    if (!bpe)
        return run_fail_memory(failure);
    choose_pretokenizer(tokenizer, metadata);
    find_bytes(tokenizer, bpe);
    code = run_word_splitter_open(bpe->pretokenizer, &bpe->splitter, failure);
    if (code < 0)
        return code;
    code = run_metadata_array(metadata, KEY "merges", &merges, failure);
    if (code == 0 && merges)
        code = read_merges(bpe, &tokenizer->vocabulary, merges, failure);
    else if (code == 0 && !bpe->pretokenizer->is_merge_optional)
        run_tokenizer_set_note(tokenizer,
                               "no " KEY "merges: tokens are merged in the order of their ids");
    run_json_close(merges);
    return code;
}

static void close_byte_pair(void *state)
{
    struct byte_pair *bpe = state;

    run_word_splitter_close(bpe->splitter);
    run_merge_table_close(&bpe->merges);
    free(bpe);
}

/* ---- encoding ---- */

struct encoding {
    const struct run_tokenizer *tokenizer;
    struct run_ids *ids;
    struct run_merger merger;
    struct run_text word; /* in the vocabulary's notation */
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
    const struct run_text *word = &encoding->word;
    int code = 0;

    for (size_t at = 0; code == 0 && at < word->n;) {
        const size_t n = run_character_decode(word->bytes, word->n, at).n_bytes;
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

/* The same for a vocabulary in GPT-2's alphabet. */
static int add_byte_symbols(struct encoding *encoding, const char *text, size_t length)
{
    const struct byte_pair *bpe = encoding->tokenizer->state;
    size_t at = 0;
    int code = 0;

    for (size_t i = 0; code == 0 && i < length; i++) {
        char character[2];
        const size_t n = gguf_alphabet_put((unsigned char)text[i], character);

        code = run_merger_add(&encoding->merger, at, n, bpe->bytes[(unsigned char)text[i]]);
        at += n;
    }
    return code;
}

static int write_word(struct encoding *encoding, const char *text, size_t length, bool is_raw)
{
    int code = 0;

    encoding->word.n = 0;
    if (is_raw)
        return run_text_add(&encoding->word, text, length);
    for (size_t i = 0; code == 0 && i < length; i++) {
        char character[2];

        code = run_text_add(&encoding->word, character,
                            gguf_alphabet_put((unsigned char)text[i], character));
    }
    return code;
}

static int encode_word(void *context, const char *text, size_t length)
{
    struct encoding *encoding = context;
    const struct byte_pair *bpe = encoding->tokenizer->state;
    const bool is_raw = bpe->pretokenizer->is_raw;
    int code = write_word(encoding, text, length, is_raw);

    if (code == 0 && (bpe->pretokenizer->is_merging_ignored || (is_raw && text[0] == '\n'))) {
        const int32_t id = run_vocabulary_find_text(&encoding->tokenizer->vocabulary,
                                                    encoding->word.bytes, encoding->word.n);

        if (id >= 0)
            return run_ids_add(encoding->ids, id);
    }
    run_merger_begin(&encoding->merger);
    if (code == 0)
        code = is_raw ? add_raw_symbols(encoding) : add_byte_symbols(encoding, text, length);
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
    struct run_text marked = {0};
    int code = 0;

    (void)is_first;
    if (bpe->pretokenizer->is_raw) {
        code = run_text_add_marked(&marked, text, length);
        text = marked.bytes;
        length = marked.n;
    }
    if (code == 0)
        code = run_word_splitter_split(bpe->splitter, text, length, encode_word, &encoding);
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
