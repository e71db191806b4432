/* Messages of the command. */
#ifndef GGUFS_FS_TERMINAL_H
#define GGUFS_FS_TERMINAL_H

#include "gguf/report.h"

#include <stdio.h>

/* Print "ggufs: MESSAGE" and a line break to stderr, safe for a terminal. */
void fs_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Print a finding on a line: `prefix`, the path of its file, its byte offset if it has one, and its
 * message. `path` is the file that the user named; it is printed if the finding names no other.
 */
void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding);

#endif
