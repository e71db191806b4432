/*
 * What ggufs-run prints beside its results. File names, keys and strings of a model come from
 * strangers: everything that a terminal may show is made safe here.
 */
#ifndef GGUFS_RUNNER_MESSAGES_H
#define GGUFS_RUNNER_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Print "ggufs-run: ", the message, escaped by gguf_escape(), and a newline to stderr. */
void run_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Write text of a model to stdout and flush it. A file or a pipe gets the bytes as they are. On a
 * terminal, what could be a command to it is escaped: all control characters but newline and tab,
 * and bytes that are not UTF-8. Returns 0 or a negative errno.
 */
int run_write_text(const char *bytes, size_t length);

#endif
