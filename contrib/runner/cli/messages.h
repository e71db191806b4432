/*
 * Messages of ggufs-run, printed to stderr. File names, keys and strings of a model come from
 * strangers, so every message is made safe for a terminal here.
 */
#ifndef GGUFS_RUNNER_MESSAGES_H
#define GGUFS_RUNNER_MESSAGES_H

/* Print "ggufs-run: ", the message, escaped by gguf_escape(), and a newline to stderr. */
void run_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * If stderr is a terminal, replace the line of the last call by another one. An empty text makes
 * room for other output.
 */
void run_message_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
