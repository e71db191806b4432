/*
 * The characters of a text and what Unicode says of them, as the patterns of pre-tokenizers ask.
 */
#ifndef GGUFS_RUNNER_CHARACTERS_H
#define GGUFS_RUNNER_CHARACTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Classes of characters, in brackets what patterns call them. */
enum {
    RUN_LETTER = 1,       /* \p{L} */
    RUN_NUMBER = 2,       /* \p{N} */
    RUN_MARK = 4,         /* \p{M} */
    RUN_PUNCTUATION = 8,  /* \p{P} */
    RUN_SYMBOL = 16,      /* \p{S} */
    RUN_SPACE = 32,       /* \s */
    RUN_UPPER = 64,       /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]: what the first part of a word is of */
    RUN_LOWER = 128,      /* [\p{Ll}\p{Lm}\p{Lo}\p{M}]: what the second part is of */
    RUN_LINE_END = 256,   /* [\r\n] */
    RUN_CONTROL = 512,    /* \p{C}, but for characters that Unicode has not assigned */
    RUN_DIGIT = 1024,     /* \d, which is \p{Nd} */
    RUN_CONNECTOR = 2048, /* \p{Pc}: with letters, marks and numbers it is \w */
};

/* No character: the text is over. */
#define RUN_NO_CHARACTER 0xffffffffu

struct run_character {
    uint32_t code;    /* U+FFFD for a byte that is not part of UTF-8 */
    uint16_t classes; /* 0 for RUN_NO_CHARACTER */
    uint16_t n_bytes;
};

/* The character at `at`, which may be `end`. */
struct run_character run_character_at(const char *text, size_t end, size_t at);

/* The same without classes, which cost more. */
struct run_character run_character_decode(const char *text, size_t end, size_t at);

uint16_t run_character_classes(uint32_t code);

/* Writes UTF-8 of up to RUN_UTF8_BYTES and returns its length. */
size_t run_character_encode(uint32_t code, char *out);

/* The bytes of U+2581, which stands for a space in vocabularies. */
#define RUN_SPACE_MARK       "\xe2\x96\x81"
#define RUN_SPACE_MARK_BYTES (sizeof RUN_SPACE_MARK - 1)

#endif
