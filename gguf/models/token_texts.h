/* How vocabularies write the bytes that a token stands for. See also byte_alphabet.h. */
#ifndef GGUFS_GGUF_TOKEN_TEXTS_H
#define GGUFS_GGUF_TOKEN_TEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of U+2581, which stands for a space in vocabularies of SentencePiece. */
#define GGUF_SPACE_MARK       "\xe2\x96\x81"
#define GGUF_SPACE_MARK_BYTES (sizeof GGUF_SPACE_MARK - 1)

/* Format of the text of a token of the type BYTE, and its length. */
#define GGUF_BYTE_TOKEN_FORMAT "<0x%02X>"
#define GGUF_BYTE_TOKEN_BYTES  6u

/* Parse the text of a token of the type BYTE, like <0x41>. Returns false if it has another form. */
bool gguf_byte_token_parse(const char *text, size_t length, uint8_t *byte);

/* The next functions write at most `length` bytes and return their number. */

/* Decode U+2581 to a space. */
size_t gguf_space_marks_decode(const char *text, size_t length, char *out);

/* Decode the escapes like Python's in tokens of the kind "rwkv". */
size_t gguf_token_unescape(const char *text, size_t length, char *out);

#endif
