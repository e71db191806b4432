/*
 * Reads the weights ahead of the computation, in threads of its own: while a layer is computed in
 * the first pass, the next ones are already being read, and the weights are in memory when a user
 * has typed a message.
 */
#pragma once

#include "contrib/runner/tree/weights.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Threads. On a busy machine, one alone would often wait for a processor between two requests. */
enum { RUN_READERS = 3 };

/* All zeros: not started. */
struct run_read_ahead {
    const struct run_weights *weights;
    pthread_t threads[RUN_READERS];
    unsigned n_threads;
    atomic_uint n_begun;
    atomic_bool should_stop;
};

/*
 * Return true if the weights fit the available memory. Otherwise they would be read twice. Opens a
 * file: call it before the process is confined.
 */
bool run_read_ahead_fits(const struct run_weights *weights);

/*
 * Start reading the weights in the order in which a pass uses them. If no thread can be
 * had, the computation reads them. The struct must stay where it is until run_read_ahead_end().
 */
void run_read_ahead_start(struct run_read_ahead *ahead, const struct run_weights *weights);

/* Wait until all is read. */
void run_read_ahead_finish(struct run_read_ahead *ahead);

/* Stop reading. Call it before the weights are closed. */
void run_read_ahead_end(struct run_read_ahead *ahead);
