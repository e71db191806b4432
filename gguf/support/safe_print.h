/*
 * Text of unknown origin (file names, keys, model strings, paths of mounts) made safe for a
 * terminal, which takes control characters for commands. Everything that prints such text prints
 * it through these functions.
 */
#ifndef GGUFS_GGUF_SAFE_PRINT_H
#define GGUFS_GGUF_SAFE_PRINT_H

#include <stddef.h>
#include <stdio.h>

/* The most bytes that gguf_escape() makes of one byte. */
#define GGUF_ESCAPED_BYTES 4u

/*
 * Write a printable copy of `length` bytes to `out`, which must have room for
 * GGUF_ESCAPED_BYTES * length bytes. C0 controls, DEL, the C1 controls U+0080 to U+009F and bytes
 * that are not UTF-8 become \xNN, byte by byte; all else stays. Returns the number of bytes
 * written; no NUL is added.
 */
size_t gguf_escape(const char *bytes, size_t length, char *out);

/* Print `length` bytes as gguf_escape() writes them. */
void gguf_print_safe(FILE *stream, const char *bytes, size_t length);

/* The same for a NUL-terminated string. */
void gguf_print_safe_string(FILE *stream, const char *string);

/*
 * Print a word as a POSIX shell reads it back: plain if that is possible, else in single quotes.
 * Bytes that gguf_escape() changes appear in the form $'\xNN' of bash and zsh.
 */
void gguf_print_shell_word(FILE *stream, const char *word);

#endif
