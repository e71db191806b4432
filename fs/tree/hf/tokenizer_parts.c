#include "fs/tree/hf/hf_tokenizer.h"

#include "fs/tree/core/tree_core.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/output/json.h"
#include "gguf/models/tokens.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistr.h>

const struct fs_vocabulary *fs_tokenizer_load(const struct fs_tree *tree, struct fs_sink *sink)
{
    const int result = fs_vocabulary_load(tree->facts->vocabulary);

    if (result < 0)
        fs_sink_fail(sink, result);
    return result < 0 ? NULL : tree->facts->vocabulary;
}

static struct gguf_string skip(struct gguf_string text, size_t n_bytes)
{
    return (struct gguf_string){text.data + n_bytes, text.length_bytes - n_bytes};
}

/* ---- WordPiece ---- */

/*
 * In GGUF, a token of WordPiece at the start of a word begins with U+2581, and the others have no
 * prefix; in tokenizer.json, the others begin with "##".
 */
#define INSIDE_PREFIX       "##"
#define INSIDE_PREFIX_BYTES (sizeof INSIDE_PREFIX - 1)

enum piece {
    BARE, /* a special token: [CLS], and [unused1], whose type is often NORMAL */
    AT_START,
    INSIDE,
};

static enum piece piece_of(const struct fs_vocabulary *vocabulary, uint32_t id,
                           struct gguf_string text)
{
    if (gguf_string_starts_with(text, GGUF_SPACE_MARK))
        return AT_START;
    if (gguf_token_type_is_control(vocabulary->types[id]) ||
        vocabulary->types[id] == GGUF_TOKEN_USER_DEFINED ||
        (gguf_string_starts_with(text, "[") && text.data[text.length_bytes - 1] == ']'))
        return BARE;
    return INSIDE;
}

static bool has_piece(const struct fs_vocabulary *vocabulary, struct gguf_string text,
                      enum piece piece)
{
    const int32_t id = text.length_bytes > 0 ? fs_vocabulary_find(vocabulary, text) : GGUF_NO_TOKEN;

    return id >= 0 && piece_of(vocabulary, (uint32_t)id, text) == piece;
}

/*
 * Return true if another token has this one's text in tokenizer.json. A special token comes before
 * one at the start of a word: [CLS] before U+2581 [CLS]. A token inside words comes before both: a,
 * written as ##a, before ##a and U+2581 ##a. The tokens that lose their text rarely come from one,
 * since punctuation is a word of its own.
 */
static bool is_text_taken(const struct fs_vocabulary *vocabulary, uint32_t id,
                          struct gguf_string text)
{
    const enum piece piece = piece_of(vocabulary, id, text);

    if (piece == INSIDE)
        return false;
    if (piece == AT_START) {
        text = skip(text, GGUF_SPACE_MARK_BYTES);
        if (has_piece(vocabulary, text, BARE))
            return true;
    }
    return gguf_string_starts_with(text, INSIDE_PREFIX) &&
           has_piece(vocabulary, skip(text, INSIDE_PREFIX_BYTES), INSIDE);
}

static void write_piece(const struct fs_vocabulary *vocabulary, uint32_t id,
                        struct gguf_string text, struct fs_sink *sink)
{
    const enum piece piece = piece_of(vocabulary, id, text);

    fs_sink_literal(sink, piece == INSIDE ? "\"" INSIDE_PREFIX : "\"");
    fs_json_characters(sink, piece == AT_START ? skip(text, GGUF_SPACE_MARK_BYTES) : text);
    fs_sink_literal(sink, "\"");
}

/* ---- tokens ---- */

bool fs_tokenizer_has_all_bytes(const struct fs_vocabulary *vocabulary)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        int32_t id;

        snprintf(name, sizeof name, GGUF_BYTE_TOKEN_FORMAT, byte);
        id = fs_vocabulary_find(vocabulary, gguf_string_of(name));
        if (id < 0 || vocabulary->types[id] != GGUF_TOKEN_BYTE)
            return false;
    }
    return true;
}

bool fs_tokenizer_has_own_text(const struct fs_vocabulary *vocabulary, uint32_t id,
                               struct gguf_string text)
{
    return text.length_bytes > 0 &&
           !u8_check((const uint8_t *)text.data, (size_t)text.length_bytes) &&
           fs_vocabulary_find(vocabulary, text) == (int32_t)id &&
           (vocabulary->kind != FS_WORDPIECE || !is_text_taken(vocabulary, id, text));
}

void fs_tokenizer_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink)
{
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);

    if (!fs_tokenizer_has_own_text(vocabulary, id, text)) {
        /* U+FFFF is not a character, so no text has it. */
        fs_sink_print(sink, "\"\\uffff%u\"", id);
    } else if (vocabulary->kind == FS_WORDPIECE) {
        write_piece(vocabulary, id, text, sink);
    } else {
        fs_json_string(sink, text);
    }
}

void fs_tokenizer_print(const struct fs_vocabulary *vocabulary, struct fs_sink *sink,
                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    while (*format != '\0') {
        const size_t n = strcspn(format, "'%");
        int32_t id;

        fs_sink_write(sink, format, n);
        format += n;
        if (*format == '\'') {
            fs_sink_literal(sink, "\"");
            format++;
        } else if (*format == '%') {
            if (format[1] == 'u')
                fs_sink_unsigned(sink, va_arg(args, unsigned));
            else if (format[1] == 'b')
                fs_sink_literal(sink, va_arg(args, int) ? "true" : "false");
            else if (format[1] == 's')
                fs_json_text(sink, va_arg(args, const char *));
            else if (format[1] == 'j')
                fs_sink_literal(sink, va_arg(args, const char *));
            else if ((id = va_arg(args, int32_t)) >= 0)
                fs_tokenizer_token(vocabulary, (uint32_t)id, sink);
            else
                fs_sink_literal(sink, "null");
            format += 2;
        }
    }
    va_end(args);
}
