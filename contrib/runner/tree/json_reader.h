/*
 * A pull parser for the JSON files of a tree (RFC 8259): one token per call, in constant memory, so
 * that the caller chooses the storage for long arrays.
 *
 * cJSON cannot read these files: it refuses lone surrogates and NUL in strings, and builds a tree
 * of all values, a million for a large vocabulary.
 *
 * Numbers are doubles. The tree writes bytes that are not UTF-8 as the lone surrogates U+DC80 to
 * U+DCFF; strings come back as the bytes themselves, and may contain NUL. A reader belongs to one
 * thread.
 */
#pragma once

#include "contrib/runner/tree/failure.h"

#include <stddef.h>
#include <stdint.h>

/* The longest string, in bytes, that a reader accepts. */
#define RUN_JSON_MAX_TEXT ((size_t)16 << 20)

enum run_json_kind {
    RUN_JSON_NULL,
    RUN_JSON_FALSE,
    RUN_JSON_TRUE,
    RUN_JSON_NUMBER,
    RUN_JSON_STRING,
    RUN_JSON_KEY,    /* of the member whose value follows */
    RUN_JSON_ARRAY,  /* its elements follow, then RUN_JSON_END */
    RUN_JSON_OBJECT, /* its members follow, then RUN_JSON_END */
    RUN_JSON_END,
};

struct run_json_token {
    enum run_json_kind kind;
    double number;
    const char *text; /* of a string or key: NUL-terminated, valid until the next call */
    size_t length;    /* in bytes, without that NUL */
};

struct run_json;

/*
 * Open the file at `path` below the directory `dir_fd`. Files over `limit_bytes` are refused while
 * they are read. `path` also names the file in failures. Does not block on a named pipe. On failure
 * `*out` is NULL.
 */
int run_json_open(int dir_fd, const char *path, uint64_t limit_bytes, struct run_json **out,
                  struct run_failure *failure);
void run_json_close(struct run_json *json);

/*
 * Reads the next token. Returns 1, 0 after the end of the document, -EINVAL if this is not JSON
 * (also if anything follows the document, or it is nested more than 64 deep), -E2BIG for a string
 * that is too long, -EFBIG for a file that is too long, or the negative errno of reading.
 */
int run_json_next(struct run_json *json, struct run_json_token *token, struct run_failure *failure);

/* Skip the rest of an array or object whose first token was just read. Returns 0 or as above. */
int run_json_skip(struct run_json *json, struct run_failure *failure);

/*
 * Read the next element of the innermost array. If it is an array or object itself, its contents
 * are skipped. Returns 1, 0 after the last element, or as above.
 */
int run_json_element(struct run_json *json, struct run_json_token *element,
                     struct run_failure *failure);
