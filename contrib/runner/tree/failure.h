/* The reason of a failure in the runner, as text for the user. */
#pragma once

#include <stdbool.h>

struct run_failure {
    char text[1024];   /* one line without its end: the place, the thing, the value, the rule. May
                          contain any bytes of a model: print it with run_message(). */
    bool is_elsewhere; /* not in the model: the text names the place */
};

/*
 * Write the text, truncated if it is too long, and return `code`, a negative errno, for the caller
 * to return: -ENOENT for a missing object, -EINVAL for a wrong one, -ENOTSUP for one that this
 * program does not support, -ENOMEM, or the error of a system call.
 */
#define run_fail(failure, ...) run_fail_at(failure, false, __VA_ARGS__)

/* The same for a failure outside the model, for example of another file or stdout. */
#define run_fail_elsewhere(failure, ...) run_fail_at(failure, true, __VA_ARGS__)

int run_fail_at(struct run_failure *failure, bool is_elsewhere, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for memory that could not be allocated. */
int run_fail_memory(struct run_failure *failure);
