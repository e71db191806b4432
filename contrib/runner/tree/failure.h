/*
 * Why something of the runner failed: what a user reads, and what the program exits with.
 */
#ifndef GGUFS_RUNNER_FAILURE_H
#define GGUFS_RUNNER_FAILURE_H

struct run_failure {
    char text[1024]; /* one line without its end: names what, where, the value found, the limit */
};

/*
 * Writes the text and returns `code`, a negative errno, for the caller to return: -ENOENT for what
 * is missing, -EINVAL for what is there and wrong, -ENOTSUP for what this program does not know,
 * -ENOMEM, or what a system call gave. Bytes that a terminal could take for a command are replaced.
 */
int run_fail(struct run_failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for memory that could not be had. */
int run_fail_memory(struct run_failure *failure);

#endif
