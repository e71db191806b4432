/* The characters of a UTF-8 text, and those split between pieces of text. */
#pragma once

#include "gguf/support/arrays.h"

#include <stdbool.h>

/* Decoded from a byte that is not part of valid UTF-8. */
#define RUN_REPLACEMENT 0xfffdu

struct run_character {
    uint32_t code;    /* RUN_REPLACEMENT for a byte that is not part of valid UTF-8 */
    uint32_t n_bytes; /* of the text */
};

/* Decode the character at `at`, which is below `end`. */
struct run_character run_character_decode(const char *text, size_t end, size_t at);

/* Append a character. Returns 0 or -ENOMEM. */
int run_character_add(struct gguf_buffer *text, uint32_t code);

/*
 * Return a stand-in for a character that may be too new for the libraries which look up its
 * properties: a character of Unicode 14 with the same general category, script, and length in
 * UTF-8. Returns any other `code` unchanged. Replaced are
 * - the characters of Unicode 15 and 15.1,
 * - the code points that Unicode reserves for ideographs and pictographs,
 * - U+180E, which PCRE2 still treats as white space.
 * Source: https://www.unicode.org/Public/15.1.0/ucd/UnicodeData.txt
 */
uint32_t run_character_stand_in(uint32_t code);

/* A text that comes in pieces. All zeros is its start, if nothing was shown before. */
struct run_utf8_stream {
    char kept[4]; /* the beginning of an incomplete character */
    size_t n_kept;
    bool has_begun; /* some of the text was shown, or of the prompt before it */
};

/*
 * Add a piece and append the characters that are complete to `out`. Invalid bytes become U+FFFD,
 * one for the longest part that could begin a character, as Unicode recommends. Returns 0 or
 * -ENOMEM.
 */
int run_utf8_put(struct run_utf8_stream *stream, const char *piece, size_t length,
                 struct gguf_buffer *out);

/* End the text: an incomplete character becomes U+FFFD. */
int run_utf8_end(struct run_utf8_stream *stream, struct gguf_buffer *out);
