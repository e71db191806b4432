/*
 * Source: sentencepiece_model.proto in https://github.com/google/sentencepiece, src, encoded as
 * Protocol Buffers 2.
 */
#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/hf/hf_tokenizer.h"
#include "fs/tree/output/value_writer.h"

#include <stdio.h>
#include <string.h>

/* ---- fields of Protocol Buffers ---- */

enum wire_type { WIRE_VARINT = 0, WIRE_BYTES = 2, WIRE_FLOAT = 5 };

#define VARINT_BYTES 10

static size_t put_varint(char *out, uint64_t number)
{
    size_t n = 0;

    for (; number >= 0x80; number >>= 7)
        out[n++] = (char)(number | 0x80);
    out[n++] = (char)number;
    return n;
}

static void write_varint(struct fs_sink *sink, uint64_t number)
{
    char bytes[VARINT_BYTES];

    fs_sink_write(sink, bytes, put_varint(bytes, number));
}

static void write_tag(struct fs_sink *sink, unsigned field, enum wire_type type)
{
    write_varint(sink, field << 3 | (unsigned)type);
}

static void write_number(struct fs_sink *sink, unsigned field, uint64_t number)
{
    write_tag(sink, field, WIRE_VARINT);
    write_varint(sink, number);
}

static void write_string(struct fs_sink *sink, unsigned field, struct gguf_string string)
{
    write_tag(sink, field, WIRE_BYTES);
    write_varint(sink, string.length_bytes);
    fs_sink_write(sink, string.data, (size_t)string.length_bytes);
}

static void write_float(struct fs_sink *sink, unsigned field, float number)
{
    uint32_t bits;

    memcpy(&bits, &number, sizeof bits);
    write_tag(sink, field, WIRE_FLOAT);
    fs_gguf_number(sink, bits, sizeof bits);
}

typedef void message_writer(const struct fs_vocabulary *vocabulary, uint32_t id,
                            struct fs_sink *sink);

/* Write a message, which follows its length. */
static void write_message(struct fs_sink *sink, unsigned field, message_writer *write,
                          const struct fs_vocabulary *vocabulary, uint32_t id)
{
    struct fs_sink counter = fs_sink_that_counts();

    write(vocabulary, id, &counter);
    write_tag(sink, field, WIRE_BYTES);
    write_varint(sink, counter.position);
    write(vocabulary, id, sink);
}

/* ---- tokens ---- */

/* Return the token for text that no other token fits: SentencePiece needs exactly one. */
static uint32_t unknown_id(const struct fs_vocabulary *vocabulary)
{
    for (uint32_t id = 0; id < vocabulary->n_tokens; id++) {
        if (vocabulary->types[id] == GGUF_TOKEN_UNKNOWN)
            return id;
    }
    return vocabulary->ids.unk >= 0 ? (uint32_t)vocabulary->ids.unk : 0;
}

/* GGUF and SentencePiece number types alike. */
static unsigned type_of(const struct fs_vocabulary *vocabulary, uint32_t id, bool has_bytes,
                        uint32_t unknown)
{
    const struct gguf_array *types = vocabulary->token_types;
    const double type = types ? fs_array_number(types, id) : GGUF_TOKEN_NORMAL;

    if (id == unknown)
        return GGUF_TOKEN_UNKNOWN;
    if (type == GGUF_TOKEN_UNKNOWN || (type == GGUF_TOKEN_BYTE && !has_bytes))
        return GGUF_TOKEN_UNUSED;
    return type >= GGUF_TOKEN_NORMAL && type <= GGUF_TOKEN_BYTE ? (unsigned)type
                                                                : GGUF_TOKEN_NORMAL;
}

/* Text that several tokens have is the first one's: the others get a text that no input has. */
static struct gguf_string text_of(const struct fs_vocabulary *vocabulary, uint32_t id,
                                  char made[24])
{
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);

    if (fs_tokenizer_has_own_text(vocabulary, id, text))
        return text;
    return (struct gguf_string){made, (uint64_t)snprintf(made, 24, "\xef\xbf\xbf%u", id)};
}

static void write_token(struct fs_sink *sink, struct gguf_string text, float score, unsigned type)
{
    char lengths[VARINT_BYTES];

    write_tag(sink, 1, WIRE_BYTES);
    /* text, float, and a type of one byte, each with its tag */
    write_varint(sink, 1 + put_varint(lengths, text.length_bytes) + text.length_bytes + 5 + 2);
    write_string(sink, 1, text);
    write_float(sink, 2, score);
    write_number(sink, 3, type);
}

/* ---- how texts become tokens ---- */

static void write_trainer(const struct fs_vocabulary *vocabulary, uint32_t unknown,
                          struct fs_sink *sink)
{
    enum { BPE = 2 };
    const struct gguf_special_ids *ids = &vocabulary->ids;
    const struct {
        unsigned id_field, text_field;
        int32_t id;
    } special[] = {
        {40, 45, (int32_t)unknown}, {41, 46, ids->bos}, {42, 47, ids->eos}, {43, 48, ids->pad}};
    char made[24];

    write_number(sink, 3, BPE);
    write_number(sink, 4, vocabulary->n_tokens);
    write_number(sink, 35, fs_tokenizer_has_all_bytes(vocabulary));
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        write_number(sink, special[i].id_field, (uint64_t)(int64_t)special[i].id);
        if (special[i].id >= 0)
            write_string(sink, special[i].text_field,
                         text_of(vocabulary, (uint32_t)special[i].id, made));
    }
}

static void write_normalizer(const struct fs_vocabulary *vocabulary, uint32_t unused,
                             struct fs_sink *sink)
{
    static const char name[] = "identity";

    write_string(sink, 1, (struct gguf_string){name, sizeof name - 1});
    write_number(sink, 3, vocabulary->is_space_added);
    write_number(sink, 4, vocabulary->is_space_merged);
    write_number(sink, 5, true); /* spaces become U+2581 */
}

bool fs_sentencepiece_applies(const struct fs_tree *tree, const void *subject)
{
    const struct fs_vocabulary *vocabulary = tree->facts->vocabulary;

    return !vocabulary->obstacle && vocabulary->kind == FS_SENTENCEPIECE && vocabulary->scores;
}

void fs_sentencepiece_write(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_vocabulary *vocabulary = fs_tokenizer_load(tree, sink);
    char made[24];
    uint32_t unknown;
    bool has_bytes;

    if (!vocabulary)
        return;
    unknown = unknown_id(vocabulary);
    has_bytes = fs_tokenizer_has_all_bytes(vocabulary);
    for (uint32_t id = 0; id < vocabulary->n_tokens && sink->error == 0; id++)
        write_token(sink, text_of(vocabulary, id, made),
                    (float)fs_array_number(vocabulary->scores, id),
                    type_of(vocabulary, id, has_bytes, unknown));
    write_message(sink, 2, write_trainer, vocabulary, unknown);
    write_message(sink, 3, write_normalizer, vocabulary, 0);
}
