/*
 * What is wrong with a model file: findings, each with its place in the file.
 *
 * A parser goes on after a finding where it can, so that `ggufs --check` tells everything at once.
 * Any error makes the file unusable; a note is only worth knowing.
 */
#ifndef GGUFS_GGUF_REPORT_H
#define GGUFS_GGUF_REPORT_H

#include "gguf/support/strings.h"

#include <stddef.h>
#include <stdint.h>

enum gguf_severity { GGUF_ERROR, GGUF_NOTE };

/* The offset of a finding that belongs to no place in the file. */
#define GGUF_NO_OFFSET UINT64_MAX

struct gguf_finding {
    enum gguf_severity severity;
    const char *path;     /* of the file that it is about, while it is told; NULL: the model's */
    int code;             /* negative errno; 0 for a note */
    uint64_t file_offset; /* in bytes from the start of the file, or GGUF_NO_OFFSET */
    char message[768];    /* one line, printable, names quoted by gguf_quote() */
};

struct gguf_report {
    /* Called for every finding in the order in which they are found; may be NULL. */
    void (*each)(void *user, const struct gguf_finding *finding);
    void *user;
    /* The file that findings are about from now on; NULL: the one that the user named. */
    const char *path;

    size_t n_errors;
    struct gguf_finding first_error; /* valid if n_errors > 0; without its path */
};

/* Adds an error and returns `code`, so that a parser can write `return gguf_error(...)`. */
int gguf_error(struct gguf_report *report, int code, uint64_t file_offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

void gguf_note(struct gguf_report *report, uint64_t file_offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
