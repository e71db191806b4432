/*
 * The JSON files of a tree. It writes bytes that are not UTF-8 as the lone surrogates U+DC80 to
 * U+DCFF; strings come back as the bytes themselves, and may contain NUL.
 */
#pragma once

#include "contrib/runner/tree/failure.h"
#include "gguf/support/arrays.h"
#include "gguf/support/json_values.h"

/* A file; all zeros: no file is open. */
struct run_json {
    struct gguf_buffer bytes;
    struct gguf_json *values; /* the whole document first */
};

/*
 * Read the file at `path` below the directory `dir_fd`, which names it in failures, too. Returns 0;
 * -EINVAL if it is not JSON, or nested more than 64 deep; -EFBIG for more than `limit_bytes`; or
 * the negative errno of opening or reading. Does not block on a named pipe. On failure there is
 * nothing to free.
 */
int run_json_read(int dir_fd, const char *path, uint64_t limit_bytes, struct run_json *json,
                  struct run_failure *failure);
void run_json_free(struct run_json *json);
