/*
 * Text of unknown origin (file names, keys, model strings, paths of mounts) made safe for a
 * terminal, which takes control characters for commands. All code that prints text of unknown
 * origin uses these functions.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* The largest number of bytes that gguf_escape() writes for one byte. */
#define GGUF_ESCAPED_BYTES 4u

/*
 * Return the bytes of the first character of a text of `length` bytes if it may be printed as it
 * is; 0 if its first byte must be escaped. Escaped are C0 controls, DEL, the C1 controls U+0080 to
 * U+009F, bytes that are not UTF-8, and the controls that reorder the text around them (U+202A to
 * U+202E and U+2066 to U+2069, https://trojansource.codes), with which a name can look like another
 * one. The marks U+200E, U+200F and U+061C, which right-to-left text needs, stay.
 */
size_t gguf_printable_length(const char *bytes, size_t length);

/*
 * Write a printable copy of `length` bytes to `out`, which must have room for GGUF_ESCAPED_BYTES *
 * length bytes. Bytes that gguf_printable_length() rejects become \xNN; all others stay. Returns
 * the number of bytes written; no NUL is added.
 */
size_t gguf_escape(const char *bytes, size_t length, char *out);

/* Return a copy of a string as gguf_escape() writes it, for the caller to free, or NULL. */
char *gguf_escaped(const char *string);

/* Print `length` bytes as gguf_escape() writes them. */
void gguf_print_safe(FILE *stream, const char *bytes, size_t length);

/* The same, with line breaks and tabs as they are. */
void gguf_print_safe_lines(FILE *stream, const char *bytes, size_t length);

/* The same as gguf_print_safe() for a NUL-terminated string. */
void gguf_print_safe_string(FILE *stream, const char *string);

/*
 * The same for the text that printf() would print, line breaks included: one line remains one, and
 * arguments need no care. If memory is too short, prints that instead.
 */
void gguf_print_safe_format(FILE *stream, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gguf_vprint_safe_format(FILE *stream, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/*
 * Print a word as a POSIX shell reads it back: plain if that is possible, else in single quotes.
 * Bytes that gguf_escape() changes appear in the form $'\xNN' of bash and zsh.
 */
void gguf_print_shell_word(FILE *stream, const char *word);
