/*
 * Signals: Ctrl-C, the end from outside, and faults of mapped weights. Signal handlers have no
 * arguments, so the state is global: there is one keeper and one set of weights.
 */
#ifndef GGUFS_RUNNER_RUN_SIGNALS_H
#define GGUFS_RUNNER_RUN_SIGNALS_H

#include "contrib/runner/tree/weights.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Install the handlers. */
void run_signals_start(void);

/*
 * Choose what Ctrl-C does. With `defer`, the first one only makes run_signals_is_interrupted()
 * return true and the second one ends the program; otherwise, and at the start, the first one ends
 * it, with exit status 130. run_signals_clear_interrupt() forgets a first one.
 */
void run_signals_defer_interrupt(bool defer);
bool run_signals_is_interrupted(void);
void run_signals_clear_interrupt(void);

/* Block the signals that end the program; `before` becomes the mask as it was, to be restored with
 * run_signals_unblock(). */
void run_signals_block(sigset_t *before);
void run_signals_unblock(const sigset_t *before);

/* Set the keeper that a signal's end of the program waits for, after closing `control`; 0 and -1
 * for none. */
void run_signals_own_keeper(pid_t keeper, int control);

/* Set the weights in whose mappings a fault may be, or NULL. */
void run_signals_watch(const struct run_weights *weights);

#endif
