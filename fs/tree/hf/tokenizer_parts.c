#include "fs/tree/hf/tokenizer_parts.h"

#include "fs/tree/json.h"
#include "gguf/conventions/token_texts.h"

#include <string.h>
#include <unistr.h>

void fs_tokenizer_string(struct fs_sink *sink, const char *string)
{
    fs_json_string(sink, (struct gguf_string){string, strlen(string)});
}

static bool has_own_text(const struct fs_vocabulary *vocabulary, uint32_t id,
                         struct gguf_string text)
{
    return text.length_bytes > 0 &&
           !u8_check((const uint8_t *)text.data, (size_t)text.length_bytes) &&
           fs_vocabulary_find(vocabulary, text) == (int32_t)id;
}

static bool begins_with(struct gguf_string text, const char *start)
{
    const size_t length = strlen(start);

    return text.length_bytes >= length && memcmp(text.data, start, length) == 0;
}

/* A special token is written as it is: [CLS], and [unused1], whose type is often NORMAL. */
static bool is_bracketed(struct gguf_string text)
{
    return begins_with(text, "[") && text.data[text.length_bytes - 1] == ']';
}

/*
 * In GGUF, a token of WordPiece at the start of a word begins with U+2581, and the others have no
 * prefix; in tokenizer.json, the others begin with "##".
 */
static void write_piece(const struct fs_vocabulary *vocabulary, uint32_t id,
                        struct gguf_string text, struct fs_sink *sink)
{
    fs_sink_literal(sink, "\"");
    if (begins_with(text, GGUF_SPACE_MARK)) {
        text.data += GGUF_SPACE_MARK_BYTES;
        text.length_bytes -= GGUF_SPACE_MARK_BYTES;
    } else if (!gguf_token_type_is_control(vocabulary->types[id]) &&
               vocabulary->types[id] != GGUF_TOKEN_USER_DEFINED && !is_bracketed(text)) {
        fs_sink_literal(sink, "##");
    }
    fs_json_string_part(sink, text, true);
    fs_sink_literal(sink, "\"");
}

void fs_tokenizer_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink)
{
    const struct gguf_string text = fs_vocabulary_text(vocabulary, id);

    if (!has_own_text(vocabulary, id, text)) {
        /* U+FFFF is not a character, so no text has it. */
        fs_sink_literal(sink, "\"\\uffff");
        fs_sink_unsigned(sink, id);
        fs_sink_literal(sink, "\"");
    } else if (vocabulary->kind == FS_WORDPIECE) {
        write_piece(vocabulary, id, text, sink);
    } else {
        fs_json_string(sink, text);
    }
}
