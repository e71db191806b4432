/* Parses a command line by the program's table of options. */
#pragma once

#include "gguf/support/option_rows.h"

/* The arguments that are not options, and what the parser owns. */
struct gguf_command_line {
    const char **words; /* as many as n_words; the array has room for all words of argv */
    int n_words;
    char **owned; /* copies of groups, into which members of the options point */
    int n_owned;
};

/*
 * Parse argv[1...], set the members of `options`, which begins with its defaults, and check that
 * the command takes each option. A value follows in the next word, after '=' or, for an option of
 * one letter, in the same word (-c4); "--" ends the options. In a group, \ escapes a comma, and
 * words that begin with x- are comments, as in fstab(5). Calls table->print_error() for an error.
 * Returns 0, -EINVAL, -ENOMEM, or the error of a handler. Call gguf_command_line_free() in every
 * case. `argv` must outlive `options` and `line`.
 */
int gguf_options_parse(const struct gguf_option_table *table, int argc, char **argv, void *options,
                       struct gguf_command_line *line);

/* Free the words; options that point into groups become invalid. */
void gguf_command_line_free(struct gguf_command_line *line);

/*
 * Parse use->value as the row says and set the member of `options`, or call the row's handler.
 * Returns 0, or calls table->print_error() and returns -EINVAL, -ENOMEM or the handler's error.
 */
int gguf_option_set(const struct gguf_option_table *table, void *options,
                    const struct gguf_option_use *use);

/* Append a text, which is not copied. Returns 0 or -ENOMEM. The caller frees texts->texts. */
int gguf_texts_add(struct gguf_texts *texts, const char *text);
