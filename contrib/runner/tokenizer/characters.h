/* The characters of a UTF-8 text and their Unicode properties. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Character classes, as bits; in brackets their names in regular expressions. */
enum {
    RUN_PUNCTUATION = 1, /* \p{P} */
    RUN_SYMBOL = 2,      /* \p{S} */
    RUN_SPACE = 4,       /* \s: Unicode's White_Space */
    RUN_CONTROL = 8,     /* \p{C}, without unassigned code points */
};

/* Decoded from a byte that is not part of valid UTF-8. */
#define RUN_REPLACEMENT 0xfffdu

struct run_character {
    uint32_t code;    /* RUN_REPLACEMENT for a byte that is not part of valid UTF-8 */
    uint32_t n_bytes; /* of the text */
};

/* Decode the character at `at`, which is below `end`. */
struct run_character run_character_decode(const char *text, size_t end, size_t at);

/* Return the classes of a character, ORed. */
unsigned run_character_classes(uint32_t code);

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

/* Write UTF-8, at most RUN_UTF8_BYTES, and return its length. */
size_t run_character_encode(uint32_t code, char *out);
