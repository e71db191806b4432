/* Reads all weights once, with a progress bar on a terminal. */
#ifndef GGUFS_RUNNER_RUN_PROGRESS_H
#define GGUFS_RUNNER_RUN_PROGRESS_H

#include "contrib/runner/tree/weights.h"

/*
 * Touches every page of what is mapped, in order, which is faster than the order in which a model
 * needs them. Does nothing if they don't fit the memory that is available: they would be read
 * twice. Ends early when an end is asked for.
 */
void run_progress_touch(const struct run_weights *weights);

#endif
