/*
 * GPT-2's alphabet, which writes each byte as a visible character: visible characters of Latin-1
 * stand for themselves, the other bytes become U+0100, U+0101 and so on, in order.
 */
#ifndef GGUFS_GGUF_BYTE_ALPHABET_H
#define GGUFS_GGUF_BYTE_ALPHABET_H

#include <stddef.h>

/* Write the character of a byte, one or two bytes of UTF-8, and return its length. */
size_t gguf_alphabet_put(unsigned char byte, char out[2]);

/*
 * Decode a text to the bytes that it stands for. A text with characters outside the alphabet stands
 * for itself. Writes at most `length` bytes and returns their number.
 */
size_t gguf_alphabet_decode(const char *text, size_t length, char *out);

#endif
