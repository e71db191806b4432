/*
 * Messages of ggufs-run, printed to stderr. File names, keys and strings of a model come from
 * strangers, so every message is made safe for a terminal here.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Print "ggufs-run: ", the message, escaped by gguf_escape(), and a newline to stderr. */
void run_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * If stderr is a terminal, replace the line of the last call. An empty text erases it.
 */
void run_message_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Seconds of a monotonic clock. */
double run_seconds(void);

/* Append a word to a list in a message, after `between` unless it is the first; truncates. */
void run_list_add(char *list, size_t list_bytes, const char *between, const char *word);

/*
 * Find out if stdout and stderr appear in one place: they are the same file, or stderr is a
 * terminal and stdout is a terminal or a pipe, which probably leads there. Call it before the
 * process confines itself.
 */
void run_message_start(void);

/*
 * Set whether the text on stdout ends inside a line. If stderr appears in the same place, the next
 * message starts a new line.
 */
void run_message_follows_text(bool is_inside_line);

/* Return true if the next message must start a new line. Async-signal-safe. */
bool run_message_is_after_text(void);
