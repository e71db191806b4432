/* The files that a task reads and writes. They are opened before the process confines itself. */
#ifndef GGUFS_RUNNER_TASK_FILES_H
#define GGUFS_RUNNER_TASK_FILES_H

#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/tree/failure.h"
#include "gguf/support/buffer.h"

#include <stdbool.h>
#include <stddef.h>

struct run_task_files {
    int input; /* the task's input: a prompt, text, ids or the process's status; stdin unless named
                */
    const char *input_name; /* for messages */
    size_t limit_bytes;     /* of the input */
    int output;             /* of --logits, or -1 */
    char *target; /* path of a regular file that appears when it is complete, owned; NULL: none */
};

/*
 * Open the input and, unless it is a regular file or a new one, the output. For those two it sets
 * `target` instead, and the keeper opens them. Returns 0 or a negative errno. Close them in any
 * case.
 */
int run_task_files_open(const struct run_options *options, struct run_task_files *files,
                        struct run_failure *failure);
void run_task_files_close(struct run_task_files *files);

/* Append all of the input to `bytes`. Returns 0, -EFBIG if it is too large, or another negative
 * errno. */
int run_task_files_read(const struct run_task_files *files, struct gguf_buffer *bytes,
                        struct run_failure *failure);

#endif
