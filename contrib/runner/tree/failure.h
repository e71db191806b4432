/* Why something in the runner failed, as a text for the user. */
#ifndef GGUFS_RUNNER_FAILURE_H
#define GGUFS_RUNNER_FAILURE_H

struct run_failure {
    char text[1024]; /* one line without its end: the place, the thing, the value, the rule. May
                        contain any bytes of a model: print it with run_message(). */
};

/*
 * Write the text, which is cut if it is too long, and return `code`, a negative errno, for the
 * caller to return: -ENOENT for what is missing, -EINVAL for what is there and wrong, -ENOTSUP for
 * what this program does not know, -ENOMEM, or what a system call gave.
 */
int run_fail(struct run_failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for memory that could not be allocated. */
int run_fail_memory(struct run_failure *failure);

#endif
