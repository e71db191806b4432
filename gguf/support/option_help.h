/* Prints what a program's table of options says: usage, --help, and completions in shells. */
#ifndef GGUFS_GGUF_OPTION_HELP_H
#define GGUFS_GGUF_OPTION_HELP_H

#include "gguf/support/option_rows.h"

#include <stdio.h>

/* No line of --help is longer. */
#define GGUF_HELP_COLUMNS 79

/* Print the usage lines, then all options by group. Write errors stay in the stream. */
void gguf_options_print_help(const struct gguf_option_table *table, FILE *stream);

/*
 * The scripts in contrib/completion/ call the program as
 *
 *   PROGRAM --complete INDEX WORD...
 *
 * and get a line "CANDIDATE<tab>DESCRIPTION" for each completion of WORD number INDEX, which starts
 * at 1; a description may be empty. An exit status other than 0 says that names of files may follow
 * as well.
 *
 * Print the completions of words[at], names of options and values; words[0] is not used. Returns 0
 * if the word cannot name a file, 1 if it is a file as the value of an option, or 2 if it is an
 * argument of the program.
 */
int gguf_options_complete(const struct gguf_option_table *table, int n_words, char **words, int at,
                          FILE *stream);

#endif
