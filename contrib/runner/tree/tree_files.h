/* Files of a tree, which may come from an untrusted source. */
#pragma once

#include "contrib/runner/tree/failure.h"
#include "gguf/support/arrays.h"
#include "gguf/support/json_values.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Open a file below the directory `tree_fd`, as openat(2) does with O_CLOEXEC. Symbolic links may
 * lead anywhere in the tree, but not out of it. Returns a descriptor or a negative errno: -EXDEV
 * for a link out of the tree.
 */
int run_open_below(int tree_fd, const char *path, int flags);

/* Return the text for an error of run_open_below(). */
const char *run_open_below_error(int code);

/*
 * Return true if an open file is on a mount of ggufs that the caller or root has made. Another
 * user's FUSE server may answer anything.
 */
bool run_is_on_own_mount(int fd);

/*
 * Read n_bytes at `offset`, fewer only at the end of the file. Returns their number or a negative
 * errno.
 */
ssize_t run_read_at(int fd, void *out, size_t n_bytes, uint64_t offset);

/*
 * A JSON file of a tree, or a value in it; all zeros: nothing was read. A tree writes bytes that
 * are not UTF-8 as the lone surrogates U+DC80 to U+DCFF; strings come back as the bytes themselves,
 * and may contain NUL.
 */
struct run_json {
    struct gguf_buffer bytes;
    struct gguf_json *values; /* the whole document first */
};

/*
 * Read the file at `path` below the directory `tree_fd`, which names it in failures, too. Returns
 * 0; -EINVAL if it is not JSON, or nested more than 64 deep; -EFBIG for more than `limit_bytes`; or
 * the negative errno of opening or reading. Does not block on a named pipe. On failure there is
 * nothing to free.
 */
int run_json_read(int tree_fd, const char *path, uint64_t limit_bytes, struct run_json *json,
                  struct run_failure *failure);

/* The same for the n_bytes at `offset` of an open file. */
int run_json_read_part(int fd, const char *path, uint64_t offset, size_t n_bytes,
                       struct run_json *json, struct run_failure *failure);
void run_json_free(struct run_json *json);
