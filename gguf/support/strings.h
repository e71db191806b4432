/* Strings as files hold them: any bytes, with a length. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct gguf_string {
    const char *data; /* not NUL-terminated, may hold any byte; NULL only if length_bytes is 0 */
    uint64_t length_bytes;
};

static inline struct gguf_string gguf_string_of(const char *text)
{
    return (struct gguf_string){text, strlen(text)};
}

bool gguf_string_equals(struct gguf_string string, const char *text);
bool gguf_string_starts_with(struct gguf_string string, const char *text);
bool gguf_string_ends_with(struct gguf_string string, const char *text);
bool gguf_string_contains(struct gguf_string string, const char *text);

/* The same as gguf_string_starts_with() for a C string. */
bool gguf_text_starts_with(const char *text, const char *start);

/*
 * Get the next word of a list, in which spaces separate words; it may be NULL. Returns false after
 * the last.
 */
bool gguf_next_word(const char **list, struct gguf_string *word);

/* Return true if a word of a list is the text. */
bool gguf_words_have(const char *words, struct gguf_string text);

/* Bytewise order, like memcmp; a prefix comes before what it begins. */
int gguf_string_compare(struct gguf_string a, struct gguf_string b);

/* The same for qsort(), of strings and of structs that begin with one. */
int gguf_string_order(const void *a, const void *b);

/*
 * Take the first part, and the separator after it, off a text in which `separator` stands between
 * parts. Returns false, with an empty part, after the last.
 */
bool gguf_next_part(struct gguf_string *text, char separator, struct gguf_string *part);

/* Makes `string` point to a copy of its own, for the caller to free. Returns 0 or -ENOMEM. */
int gguf_string_copy(struct gguf_string *string);

/* Write a text as printf() does. Returns NULL if out of memory; the caller frees it. */
char *gguf_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct gguf_quoted {
    char text[200];
};

/*
 * Quote a string from a file for a message: in double quotes, with \" and \\ for these two, \xNN
 * for what gguf_escape() escapes, and cut after about 190 bytes at the end of a character.
 * Use as gguf_quote(name).text inside one expression.
 */
struct gguf_quoted gguf_quote(struct gguf_string string);
