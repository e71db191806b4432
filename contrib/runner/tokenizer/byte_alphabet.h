/*
 * GPT-2's characters for bytes, which its vocabularies are written in: visible characters of
 * Latin-1 stand for themselves, the other bytes are U+0100, U+0101 ... in their order.
 */
#ifndef GGUFS_RUNNER_BYTE_ALPHABET_H
#define GGUFS_RUNNER_BYTE_ALPHABET_H

#include <stddef.h>

/* Writes the character of a byte, one or two bytes of UTF-8, and returns its length. */
size_t run_alphabet_put(unsigned char byte, char out[2]);

/* The bytes that a text stands for; a text with other characters stands for itself. Writes at most
 * `length` bytes and returns their number. */
size_t run_alphabet_decode(const char *text, size_t length, char *out);

#endif
