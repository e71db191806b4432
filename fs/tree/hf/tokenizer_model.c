/* The model of tokenizer.json: BPE, Unigram or WordPiece. */
#include "fs/tree/hf/hf_tokenizer.h"
#include "fs/tree/output/json.h"
#include "fs/tree/output/shortest.h"
#include "gguf/models/tokens.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <unistr.h>

/* No merges are derived from longer tokens: that would take quadratic time. */
#define MAX_MERGED_BYTES 512u

/* The limit of a word's length in all known models of WordPiece. */
#define MAX_WORD_CHARACTERS "100"

/* ---- the head ---- */

static void write_head(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    const struct gguf_pretokenizer *pretokenizer = vocabulary->pretokenizer;
    const bool is_sentencepiece = vocabulary->kind == FS_SENTENCEPIECE;
    const int32_t unk = vocabulary->ids.unk;

    switch (vocabulary->kind) {
    case FS_BYTE_PAIR:
    case FS_SENTENCEPIECE:
        fs_tokenizer_print(vocabulary, sink,
                           "{'type':'BPE','dropout':null,'unk_token':%t,"
                           "'continuing_subword_prefix':null,'end_of_word_suffix':null,"
                           "'fuse_unk':false,'byte_fallback':%b,'ignore_merges':%b,\n'vocab':{\n",
                           is_sentencepiece ? unk : GGUF_NO_TOKEN,
                           is_sentencepiece || pretokenizer->is_raw,
                           pretokenizer && pretokenizer->is_merging_ignored);
        break;
    case FS_UNIGRAM:
        fs_tokenizer_print(vocabulary, sink, "{'type':'Unigram','unk_id':");
        if (unk >= 0)
            fs_sink_unsigned(sink, (uint64_t)unk);
        else
            fs_sink_literal(sink, "null");
        fs_tokenizer_print(vocabulary, sink, ",'byte_fallback':%b,\n'vocab':[\n",
                           fs_tokenizer_has_all_bytes(vocabulary));
        break;
    case FS_WORDPIECE:
        fs_tokenizer_print(vocabulary, sink,
                           unk >= 0 ? "{'type':'WordPiece','unk_token':%t"
                                    : "{'type':'WordPiece','unk_token':'[UNK]'",
                           unk);
        fs_tokenizer_print(vocabulary, sink,
                           ",'continuing_subword_prefix':'##',"
                           "'max_input_chars_per_word':" MAX_WORD_CHARACTERS ",\n'vocab':{\n");
        break;
    }
}

/* ---- the vocabulary ---- */

static void write_score(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink)
{
    float score = (float)fs_array_number(vocabulary->scores, id);
    char text[FS_NUMBER_BYTES];

    if (!isfinite(score))
        score = -FLT_MAX;
    /* The text <0x41> must not become a byte. */
    if (vocabulary->types[id] == GGUF_TOKEN_BYTE)
        score = vocabulary->lowest_score;
    /* As a double, so that sums of scores equal the sums in programs that read floats. */
    fs_sink_write(sink, text, fs_write_double((double)score, text));
}

static void write_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink)
{
    if (vocabulary->kind == FS_UNIGRAM) {
        fs_sink_literal(sink, "[");
        fs_tokenizer_token(vocabulary, id, sink);
        fs_sink_literal(sink, ",");
        write_score(vocabulary, id, sink);
        fs_sink_literal(sink, "]");
    } else {
        fs_tokenizer_token(vocabulary, id, sink);
        fs_sink_literal(sink, ":");
        fs_sink_unsigned(sink, id);
    }
}

static void write_tokens(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    for (uint32_t id = 0; id < vocabulary->n_tokens && sink->error == 0; id++) {
        if (id > 0)
            fs_sink_literal(sink, ",\n");
        write_token(vocabulary, id, sink);
    }
    fs_sink_literal(sink, vocabulary->kind == FS_UNIGRAM ? "\n]" : "\n}");
}

/* ---- the merges ---- */

/* Return the token of a text, or GGUF_NO_TOKEN if no merge can use or make it. */
static int32_t find_merging(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    const int32_t id = text.length_bytes > 0 ? fs_vocabulary_find(vocabulary, text) : GGUF_NO_TOKEN;

    if (id < 0 || gguf_token_type_is_control(vocabulary->types[id]) ||
        u8_check((const uint8_t *)text.data, (size_t)text.length_bytes))
        return GGUF_NO_TOKEN;
    return id;
}

/* Return true if merges may be derived: <0x41> is a byte, not text. */
static bool is_text_token(const struct fs_vocabulary *vocabulary, struct gguf_string text)
{
    const int32_t id = find_merging(vocabulary, text);

    return id >= 0 && vocabulary->types[id] != GGUF_TOKEN_BYTE;
}

/* The merges that are being written. */
struct merges {
    const struct fs_vocabulary *vocabulary;
    struct fs_sink *sink;
    bool is_first; /* none has been written */
};

static void write_merge(struct merges *merges, struct gguf_string left, struct gguf_string right)
{
    struct fs_sink *sink = merges->sink;

    fs_sink_literal(sink, merges->is_first ? "\n[" : ",\n[");
    merges->is_first = false;
    fs_json_string(sink, left);
    fs_sink_literal(sink, ",");
    fs_json_string(sink, right);
    fs_sink_literal(sink, "]");
}

/*
 * Write a merge of the file, "LEFT RIGHT", unless its parts or its result are not tokens that text
 * may become: tokenizer.json must not have them.
 */
static void write_file_merge(struct merges *merges, struct gguf_string merge)
{
    const struct fs_vocabulary *vocabulary = merges->vocabulary;
    char joined[MAX_MERGED_BYTES];
    const char *space =
        merge.length_bytes > 1 ? memchr(merge.data + 1, ' ', (size_t)merge.length_bytes - 1) : NULL;
    struct gguf_string left, right;

    if (!space || merge.length_bytes > sizeof joined)
        return;
    left = (struct gguf_string){merge.data, (uint64_t)(space - merge.data)};
    right = (struct gguf_string){space + 1, merge.length_bytes - left.length_bytes - 1};
    memcpy(joined, left.data, (size_t)left.length_bytes);
    memcpy(joined + left.length_bytes, right.data, (size_t)right.length_bytes);
    if (find_merging(vocabulary, left) >= 0 && find_merging(vocabulary, right) >= 0 &&
        find_merging(vocabulary, (struct gguf_string){joined, merge.length_bytes - 1}) >= 0)
        write_merge(merges, left, right);
}

/*
 * Write the merges whose result is a token: each way to divide it into two tokens. The longest
 * left part comes first, as it does where runs of a character are merged from left to right.
 */
static void write_merges_of(struct merges *merges, uint32_t id)
{
    const struct fs_vocabulary *vocabulary = merges->vocabulary;
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);

    if (text.length_bytes > MAX_MERGED_BYTES || !is_text_token(vocabulary, text) ||
        fs_vocabulary_find(vocabulary, text) != (int32_t)id)
        return;
    for (uint64_t n = text.length_bytes - 1; n > 0; n--) {
        const struct gguf_string left = {text.data, n};
        const struct gguf_string right = {text.data + n, text.length_bytes - n};

        if (((unsigned char)*right.data & 0xc0) != 0x80 && is_text_token(vocabulary, left) &&
            is_text_token(vocabulary, right))
            write_merge(merges, left, right);
    }
}

/*
 * Where the symbols are characters, a run of line breaks that is a token becomes that token, even
 * if the file has no merges for it. Write all merges of these runs.
 */
static void write_line_break_merges(struct merges *merges)
{
    static const char breaks[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";

    for (size_t n = 2; n < sizeof breaks; n++) {
        const struct gguf_string run = {breaks, n};

        if (is_text_token(merges->vocabulary, run))
            write_merges_of(merges, (uint32_t)fs_vocabulary_find(merges->vocabulary, run));
    }
}

static void write_file_merges(struct merges *merges)
{
    const struct gguf_array *array = merges->vocabulary->merges;
    struct gguf_cursor cursor = gguf_array_begin(array);

    if (merges->vocabulary->pretokenizer->is_raw)
        write_line_break_merges(merges);
    for (uint64_t i = 0; i < array->n_elements && merges->sink->error == 0; i++) {
        struct gguf_value merge;

        gguf_array_next(&cursor, GGUF_STRING, &merge);
        write_file_merge(merges, merge.string);
    }
}

static void write_derived_merges(struct merges *merges)
{
    const struct fs_vocabulary *vocabulary = merges->vocabulary;

    for (uint32_t i = 0; i < vocabulary->n_tokens && merges->sink->error == 0; i++)
        write_merges_of(merges, vocabulary->merge_order[i]);
}

void fs_tokenizer_write_model(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    struct merges merges = {vocabulary, sink, true};

    write_head(vocabulary, sink);
    write_tokens(vocabulary, sink);
    if (vocabulary->kind == FS_BYTE_PAIR || vocabulary->kind == FS_SENTENCEPIECE) {
        fs_sink_literal(sink, ",\n\"merges\":[");
        if (fs_has_merges(vocabulary))
            write_file_merges(&merges);
        else
            write_derived_merges(&merges);
        fs_sink_literal(sink, "\n]");
    }
    fs_sink_literal(sink, "}");
}
