/*
 * The time until the first token: from opening the model to the logits after a prompt of one token,
 * including the mount of a model file.
 */
#ifndef GGUFS_RUNNER_FIRST_TOKEN_H
#define GGUFS_RUNNER_FIRST_TOKEN_H

#include "contrib/runner/cli/run_options.h"

struct run_first_token {
    double cold_seconds; /* no page of the model's files was in memory; NaN if that is impossible */
    double warm_seconds; /* after another load */
};

/*
 * Load the model twice in child processes, and drop its files from the page cache before. They stay
 * there if MODEL is a tree, if another process has mapped them, or if they are on a file system in
 * memory. A failed load gives NaN and prints nothing. Call it while there is a single thread.
 */
void run_first_token_measure(const struct run_options *options, struct run_first_token *result);

#endif
