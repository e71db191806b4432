#include "fs/tree/views/view_files.h"

#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/hf/vocabulary.h"
#include "fs/tree/output/escaped_text.h"
#include "fs/tree/output/json.h"
#include "gguf/models/tokens.h"

#include <math.h>
#include <string.h>

/* Longer tokens are written as the file has them; no known vocabulary has any. */
#define MAX_DECODED_BYTES 4096u

/* ---- lines ---- */

/* Write one element as a line; `index` is its number. */
typedef void write_line(const struct fs_tree *tree, const struct gguf_value *value, uint64_t index,
                        struct fs_sink *sink);

static void write_lines(const struct fs_tree *tree, const struct gguf_array *array,
                        write_line *write, struct fs_sink *sink)
{
    struct gguf_cursor cursor = gguf_array_begin(array);

    for (uint64_t i = 0; i < array->n_elements && sink->error == 0; i++) {
        struct gguf_value value;

        gguf_array_next(&cursor, array->element_type, &value);
        write(tree, &value, i, sink);
        fs_sink_literal(sink, "\n");
    }
}

/* Define the condition and the writer of a file with a line for each element of an array. */
#define DEFINE_TEXT(name, array, write)                                                            \
    bool fs_##name##_text_applies(const struct fs_tree *tree, const void *subject)                 \
    {                                                                                              \
        (void)subject;                                                                             \
        return tree->facts->vocabulary->array != NULL;                                             \
    }                                                                                              \
    void fs_##name##_text_write(const struct fs_tree *tree, const void *subject,                   \
                                struct fs_sink *sink)                                              \
    {                                                                                              \
        (void)subject;                                                                             \
        write_lines(tree, tree->facts->vocabulary->array, write, sink);                            \
    }

/* ---- tokens ---- */

static uint8_t type_of(const struct fs_vocabulary *vocabulary, uint64_t index)
{
    const struct gguf_array *types = vocabulary->token_types;
    double type;

    if (!types || index >= types->n_elements)
        return GGUF_TOKEN_NORMAL;
    type = fs_array_number(types, index);
    return type >= 0 && type <= GGUF_TOKEN_BYTE ? (uint8_t)type : GGUF_TOKEN_UNDEFINED;
}

static size_t decode(enum fs_notation notation, const char *text, size_t length, char *out)
{
    switch (notation) {
    case FS_IN_BYTE_ALPHABET:
        return gguf_alphabet_decode(text, length, out);
    case FS_WITH_SPACE_MARKS:
        return gguf_space_marks_decode(text, length, out);
    case FS_WITH_ESCAPES:
        return gguf_token_unescape(text, length, out);
    case FS_AS_BYTES:
        break;
    }
    if (length > 0)
        memcpy(out, text, length);
    return length;
}

static void write_token(const struct fs_tree *tree, const struct gguf_value *value, uint64_t index,
                        struct fs_sink *sink)
{
    const char *text = value->string.data;
    size_t length = (size_t)value->string.length_bytes;
    const uint8_t type = type_of(tree->facts->vocabulary, index);
    char decoded[MAX_DECODED_BYTES];
    uint8_t byte;

    if (type == GGUF_TOKEN_BYTE && gguf_byte_token_parse(text, length, &byte)) {
        decoded[0] = (char)byte;
        length = 1;
        text = decoded;
    } else if (!gguf_token_type_is_control(type) && type != GGUF_TOKEN_USER_DEFINED &&
               length <= sizeof decoded) {
        length = decode(tree->facts->vocabulary->notation, text, length, decoded);
        text = decoded;
    }
    fs_escaped_write(sink, text, length, true);
}

DEFINE_TEXT(tokens, tokens, write_token)

/* ---- scores ---- */

static void write_score(const struct fs_tree *tree, const struct gguf_value *value, uint64_t index,
                        struct fs_sink *sink)
{
    const double number = value->type == GGUF_FLOAT32   ? (double)value->f32
                          : value->type == GGUF_FLOAT64 ? value->f64
                                                        : 0;

    if (isfinite(number))
        fs_json_scalar(sink, value);
    else
        fs_sink_literal(sink, isnan(number) ? "nan" : number < 0 ? "-inf" : "inf");
}

DEFINE_TEXT(scores, scores, write_score)

/* ---- types ---- */

static void write_type(const struct fs_tree *tree, const struct gguf_value *value, uint64_t index,
                       struct fs_sink *sink)
{
    const char *name = NULL;

    if (value->type != GGUF_FLOAT32 && value->type != GGUF_FLOAT64 && value->type != GGUF_BOOL)
        name = gguf_token_type_name(value->u64);
    if (name)
        fs_sink_literal(sink, name);
    else
        fs_json_scalar(sink, value);
}

DEFINE_TEXT(types, token_types, write_type)

/* ---- merges ---- */

static void write_merge(const struct fs_tree *tree, const struct gguf_value *value, uint64_t index,
                        struct fs_sink *sink)
{
    /* The byte alphabet has visible characters only, so a backslash is one. */
    fs_escaped_write(sink, value->string.data, (size_t)value->string.length_bytes,
                     tree->facts->vocabulary->notation != FS_IN_BYTE_ALPHABET);
}

DEFINE_TEXT(merges, merges, write_merge)
