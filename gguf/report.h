/*
 * Findings: errors and notes about a model file, each with its place in the file.
 *
 * A parser continues after a finding where it can, so that `ggufs --check` reports all at once. An
 * error makes the file unusable; a note does not.
 */
#ifndef GGUFS_GGUF_REPORT_H
#define GGUFS_GGUF_REPORT_H

#include "gguf/support/strings.h"

#include <stddef.h>
#include <stdint.h>

enum gguf_severity { GGUF_ERROR, GGUF_NOTE };

/* The offset of a finding that has no place in the file. */
#define GGUF_NO_OFFSET UINT64_MAX

struct gguf_finding {
    enum gguf_severity severity;
    const char *path;     /* of its file; valid during `each`; NULL: the file that the user named */
    int code;             /* negative errno; 0 for a note */
    uint64_t file_offset; /* in bytes from the start of the file, or GGUF_NO_OFFSET */
    char message[768];    /* one line, printable, names quoted by gguf_quote() */
};

struct gguf_report {
    /* Called for every finding, in the order of their discovery; may be NULL. */
    void (*each)(void *user, const struct gguf_finding *finding);
    void *user;
    /* The file of the findings to come; NULL: the one that the user named. */
    const char *path;

    size_t n_errors;
    struct gguf_finding first_error; /* valid if n_errors > 0; its path is not */
};

/* Add an error. Returns `code`, so that a parser can write `return gguf_error(...)`. */
int gguf_error(struct gguf_report *report, int code, uint64_t file_offset, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Add a note. */
void gguf_note(struct gguf_report *report, uint64_t file_offset, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
