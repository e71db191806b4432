/* Messages of the command. */
#pragma once

#include "fs/tree/output/sink.h"
#include "gguf/support/strings.h"

/* Print "ggufs: MESSAGE" and a line break to stderr, safe for a terminal. */
void fs_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Print that memory is short. Returns EX_OSERR. */
int fs_refuse_memory(void);

/*
 * For a table with names in the first column: return the columns that this name also fits in, and
 * print a name, safe for a terminal, with blanks after it. Longer names move the rest of their
 * line.
 */
int fs_name_columns(int columns, struct gguf_string name);
void fs_print_name(struct gguf_string name, int columns);

/*
 * Print the output of write(subject, sink) to stdout. Returns 0 or -ENOMEM.
 */
int fs_print_written(void (*write)(const void *subject, struct fs_sink *sink), const void *subject);
