/* The files that a task reads and writes. They are opened before the process confines itself. */
#pragma once

#include "contrib/runner/cli/run_options.h"
#include "contrib/runner/tree/failure.h"
#include "gguf/support/arrays.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Linux truncates lines typed or pasted at a terminal to this many bytes, see termios(3). */
#define RUN_TERMINAL_LINE_BYTES 4095

/* Return true if a line from a terminal, with or without its end, may have been cut. */
bool run_is_line_cut(const char *line, ssize_t n_bytes);

struct run_task_files {
    int input; /* the task's input: a prompt, text, ids or the process's status; stdin unless named
                */
    const char *input_name; /* for messages */
    size_t limit_bytes;     /* of the input */
    int output;             /* of --logits, or -1 */
    int sums;               /* of the process's mappings, for run_proc_bytes(); -1: unknown */

    /* The texts in the files of these options, owned; empty if not given. */
    struct gguf_buffer messages, tools, chat_template;
};

/*
 * Open the input, and the output, whose content stays as it is until something is written. Returns
 * 0 or a negative errno. Close them in any case.
 */
int run_task_files_open(const struct run_options *options, struct run_task_files *files,
                        struct run_failure *failure);
void run_task_files_close(struct run_task_files *files);

/*
 * Return the number of bytes that a file of /proc gives, in KiB, in the line that begins with
 * `name`, as in "\nRssAnon:"; 0 without that line.
 */
uint64_t run_proc_bytes(int fd, const char *name);

/*
 * Fail with -EINVAL if standard output or the output of --logits is a model file, which writing
 * would damage, or if --logits names the file of --tokens. Call it before anything is written and
 * before the process confines itself.
 */
int run_task_files_check(const struct run_options *options, const struct run_task_files *files,
                         struct run_failure *failure);

/* Append all of the input to `bytes`. Returns 0, -EFBIG if it is too large, or another negative
 * errno. */
int run_task_files_read(const struct run_task_files *files, struct gguf_buffer *bytes,
                        struct run_failure *failure);
