/* Prints a program's usage and --help. */
#ifndef GGUFS_GGUF_OPTION_HELP_H
#define GGUFS_GGUF_OPTION_HELP_H

#include "gguf/support/option_rows.h"

#include <stdio.h>

/* No line of --help is longer. */
#define GGUF_HELP_COLUMNS 79

/* Print the usage lines, then all options by group. Write errors stay in the stream. */
void gguf_options_print_help(const struct gguf_option_table *table, FILE *stream);

#endif
