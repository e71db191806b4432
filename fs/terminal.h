/* What the command says at the terminal, and the exit status with which it ends. */
#ifndef GGUFS_FS_TERMINAL_H
#define GGUFS_FS_TERMINAL_H

#include "gguf/report.h"

#include <stdio.h>

/* Prints a path on one line: its control characters as \xNN. */
void fs_print_path(FILE *stream, const char *path);

/* Prints a finding on a line, after "PREFIX PATH: "; `path` is the model's. */
void fs_print_finding(FILE *stream, const char *prefix, const char *path,
                      const struct gguf_finding *finding);

/*
 * Prints "ggufs: PATH: " and the message to stderr, and, unless it is NULL, behind that a command
 * that helps, with the path as its argument, quoted for a shell.
 */
void fs_complain(const char *path, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The exit status (sysexits.h) for an error of gguf/ or fs/, a negative errno. */
int fs_exit_status(int code);

#endif
