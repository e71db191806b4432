/* Read all weights once, with a progress bar on a terminal. */
#ifndef GGUFS_RUNNER_RUN_PROGRESS_H
#define GGUFS_RUNNER_RUN_PROGRESS_H

#include "contrib/runner/tree/weights.h"

/*
 * Touch every mapped page in file order, which is faster than the model's order of use. Do nothing
 * if they do not fit the available memory, because they would be read twice. End early if an
 * interrupt was deferred.
 */
void run_progress_touch(const struct run_weights *weights);

#endif
