/*
 * The steps of tokenizer.json around its model. Source: the types of that name in
 * https://github.com/huggingface/tokenizers, tokenizers/src.
 *
 * Normalizers that llama.cpp lacks (the NFC of Qwen) are left out: a file must give the
 * tokens that programs make of its GGUF.
 */
#include "fs/tree/hf/hf_tokenizer.h"
#include "gguf/models/tokens.h"

#include <ctype.h>
#include <string.h>

/* The longest expression, with its NUL. */
#define MAX_PATTERN_BYTES 2048u

/* ---- the normalizer ---- */

#define REPLACE(kind, pattern, content)                                                            \
    "{'type':'Replace','pattern':{'" kind "':'" pattern "'},'content':'" content "'}"
#define REPLACE_SPACES REPLACE("String", " ", GGUF_SPACE_MARK)
#define PREPEND        "{'type':'Prepend','prepend':'" GGUF_SPACE_MARK "'}"

/*
 * The tables of marks and punctuation in BertNormalizer and BertPreTokenizer are of Unicode 8; a
 * regular expression finds later ones.
 */
static void write_bert_normalizer(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    fs_tokenizer_print(vocabulary, sink,
                       "{'type':'Sequence','normalizers':[{'type':'BertNormalizer',"
                       "'clean_text':true,'handle_chinese_chars':true,'strip_accents':%b,"
                       "'lowercase':%b}",
                       vocabulary->is_stripped, vocabulary->is_lowered);
    if (vocabulary->is_stripped)
        fs_tokenizer_print(vocabulary, sink, "," REPLACE("Regex", "\\\\p{Mn}", ""));
    fs_sink_literal(sink, "]}");
}

/* Write the table of replacements in base64. */
static void write_charsmap(const struct gguf_array *charsmap, struct fs_sink *sink)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    for (uint64_t i = 0; i < charsmap->n_elements && sink->error == 0; i += 3) {
        const uint64_t left = charsmap->n_elements - i;
        const unsigned first = fs_array_byte(charsmap, i);
        const unsigned second = left > 1 ? fs_array_byte(charsmap, i + 1) : 0;
        const unsigned third = left > 2 ? fs_array_byte(charsmap, i + 2) : 0;

        fs_sink_write(sink,
                      (char[]){digits[first >> 2], digits[(first & 3) << 4 | second >> 4],
                               left > 1 ? digits[(second & 15) << 2 | third >> 6] : '=',
                               left > 2 ? digits[third & 63] : '='},
                      4);
    }
}

static void write_unigram_normalizer(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    fs_tokenizer_print(vocabulary, sink, "{'type':'Sequence','normalizers':[");
    if (vocabulary->charsmap) {
        fs_tokenizer_print(vocabulary, sink, "{'type':'Precompiled','precompiled_charsmap':'");
        write_charsmap(vocabulary->charsmap, sink);
        fs_sink_literal(sink, "\"},");
    }
    if (vocabulary->is_space_merged)
        fs_tokenizer_print(
            vocabulary, sink,
            REPLACE("Regex", "\\\\A +| +\\\\z", "") "," REPLACE("Regex", " {2,}", " ") ",");
    if (vocabulary->is_space_added || vocabulary->is_space_merged)
        fs_tokenizer_print(vocabulary, sink, PREPEND ",");
    /* Spaces alone get no other one before them. */
    if (vocabulary->is_space_added && !vocabulary->is_space_merged)
        fs_tokenizer_print(vocabulary, sink,
                           REPLACE("Regex", "\\\\A" GGUF_SPACE_MARK "(?= *\\\\z)", "") ",");
    fs_tokenizer_print(vocabulary, sink, REPLACE_SPACES "]}");
}

/* ---- the pre-tokenizer ---- */

#define SPLIT "{'type':'Split','pattern':{'Regex':%s},'behavior':'Isolated','invert':false}"

/*
 * Some vocabularies lack bytes. Such a byte is left out of the tokens, but what is before and after
 * it must not merge: split there. Only merges that are derived may have a missing byte in a token.
 */
static void write_split_at_missing_bytes(const struct fs_vocabulary *vocabulary,
                                         struct fs_sink *sink)
{
    char pattern[sizeof "[]" + (size_t)2 * 256] = "[";
    size_t length = 1;

    for (unsigned byte = 0; byte < 256; byte++) {
        char character[2];
        const size_t n = gguf_alphabet_put((unsigned char)byte, character);
        const int32_t id = fs_vocabulary_find(vocabulary, (struct gguf_string){character, n});

        if (id >= 0 && !gguf_token_type_is_control(vocabulary->types[id]))
            continue;
        if (ispunct(byte))
            pattern[length++] = '\\';
        memcpy(pattern + length, character, n);
        length += n;
    }
    if (length == 1)
        return;
    memcpy(pattern + length, "]", sizeof "]");
    fs_tokenizer_print(vocabulary, sink, ",\n  " SPLIT, pattern);
}

static void write_pretokenizer(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    const struct gguf_pretokenizer *pretokenizer = vocabulary->pretokenizer;

    if (vocabulary->kind == FS_WORDPIECE) {
        fs_tokenizer_print(vocabulary, sink,
                           "{'type':'Sequence','pretokenizers':["
                           "{'type':'BertPreTokenizer'}," SPLIT "]}",
                           "\\p{P}");
        return;
    }
    if (!pretokenizer) {
        fs_sink_literal(sink, "null");
        return;
    }
    fs_tokenizer_print(vocabulary, sink, "{'type':'Sequence','pretokenizers':[");
    for (size_t i = 0; i < GGUF_MAX_PATTERNS && pretokenizer->patterns[i]; i++) {
        char pattern[MAX_PATTERN_BYTES];

        gguf_pattern_to_oniguruma(pretokenizer->patterns[i], pattern);
        fs_tokenizer_print(vocabulary, sink, i > 0 ? ",\n  " SPLIT : "\n  " SPLIT, pattern);
    }
    if (!pretokenizer->is_raw) {
        fs_tokenizer_print(vocabulary, sink,
                           ",\n  {'type':'ByteLevel','add_prefix_space':false,"
                           "'trim_offsets':true,'use_regex':false}");
        if (fs_has_merges(vocabulary))
            write_split_at_missing_bytes(vocabulary, sink);
    }
    fs_sink_literal(sink, "]}");
}

/* ---- the post-processor ---- */

#define SPECIAL "{'SpecialToken':{'id':%t,'type_id':%u}}"

static void write_template(const struct fs_vocabulary *vocabulary, int32_t bos, int32_t eos,
                           bool is_second, struct fs_sink *sink)
{
    const bool is_bert = vocabulary->kind == FS_WORDPIECE;
    const unsigned type_id = is_second && is_bert ? 1 : 0;

    if (bos >= 0 && !(is_second && is_bert))
        fs_tokenizer_print(vocabulary, sink, SPECIAL ",", bos, type_id);
    fs_tokenizer_print(vocabulary, sink, "{'Sequence':{'id':%s,'type_id':%u}}",
                       is_second ? "B" : "A", type_id);
    if (eos >= 0)
        fs_tokenizer_print(vocabulary, sink, "," SPECIAL, eos, type_id);
}

static void write_template_token(const struct fs_vocabulary *vocabulary, int32_t id,
                                 struct fs_sink *sink)
{
    fs_tokenizer_print(vocabulary, sink, "%t:{'id':%t,'ids':[%u],'tokens':[%t]}", id, id,
                       (unsigned)id, id);
}

static void write_post_processor(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    const struct gguf_special_ids *ids = &vocabulary->ids;
    const int32_t bos = ids->is_bos_added ? ids->bos : GGUF_NO_TOKEN;
    const int32_t eos = ids->is_eos_added ? ids->eos : GGUF_NO_TOKEN;

    if (bos < 0 && eos < 0) {
        fs_sink_literal(sink, "null");
        return;
    }
    fs_tokenizer_print(vocabulary, sink, "{'type':'TemplateProcessing',\n  'single':[");
    write_template(vocabulary, bos, eos, false, sink);
    fs_sink_literal(sink, "],\n  \"pair\":[");
    write_template(vocabulary, bos, eos, false, sink);
    fs_sink_literal(sink, ",");
    write_template(vocabulary, bos, eos, true, sink);
    fs_sink_literal(sink, "],\n  \"special_tokens\":{");
    if (bos >= 0)
        write_template_token(vocabulary, bos, sink);
    if (eos >= 0 && eos != bos) {
        fs_sink_literal(sink, bos >= 0 ? "," : "");
        write_template_token(vocabulary, eos, sink);
    }
    fs_sink_literal(sink, "}}");
}

/* ---- the decoder ---- */

#define FROM_SPACE_MARKS                                                                           \
    "{'type':'Sequence','decoders':[" REPLACE("String", GGUF_SPACE_MARK,                           \
                                              " ") ",{'type':'ByteFallback'},{'type':'Fuse'}"

static const char *decoder_of(const struct fs_vocabulary *vocabulary)
{
    if (vocabulary->kind == FS_WORDPIECE)
        return "{'type':'WordPiece','prefix':'##','cleanup':true}";
    if (vocabulary->pretokenizer && !vocabulary->pretokenizer->is_raw)
        return "{'type':'ByteLevel','add_prefix_space':true,'trim_offsets':true,'use_regex':true}";
    if (vocabulary->kind == FS_BYTE_PAIR || !vocabulary->is_space_added)
        return FROM_SPACE_MARKS "]}";
    return FROM_SPACE_MARKS ",{'type':'Strip','content':' ','start':1,'stop':0}]}";
}

/* ---- all of it ---- */

static void write_normalizer(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    switch (vocabulary->kind) {
    case FS_WORDPIECE:
        write_bert_normalizer(vocabulary, sink);
        break;
    case FS_SENTENCEPIECE:
        fs_tokenizer_print(vocabulary, sink,
                           vocabulary->is_space_added ? "{'type':'Sequence','normalizers':[" PREPEND
                                                        "," REPLACE_SPACES "]}"
                                                      : REPLACE_SPACES);
        break;
    case FS_BYTE_PAIR:
        fs_tokenizer_print(vocabulary, sink,
                           vocabulary->pretokenizer->is_raw ? REPLACE_SPACES : "null");
        break;
    case FS_UNIGRAM:
        write_unigram_normalizer(vocabulary, sink);
        break;
    }
}

void fs_tokenizer_write_pipeline(const struct fs_vocabulary *vocabulary, struct fs_sink *sink)
{
    fs_sink_literal(sink, "\"normalizer\": ");
    write_normalizer(vocabulary, sink);
    fs_sink_literal(sink, ",\n\"pre_tokenizer\": ");
    write_pretokenizer(vocabulary, sink);
    fs_sink_literal(sink, ",\n\"post_processor\": ");
    write_post_processor(vocabulary, sink);
    fs_sink_literal(sink, ",\n\"decoder\": ");
    fs_tokenizer_print(vocabulary, sink, decoder_of(vocabulary));
    fs_sink_literal(sink, ",\n");
}
