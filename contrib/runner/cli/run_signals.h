/*
 * Signals: Ctrl-C, termination, and page faults of mapped weights. Signal handlers have no
 * arguments, so the state is global: one set of weights.
 */
#pragma once

#include "contrib/runner/tree/weights.h"

#include <signal.h>
#include <stdbool.h>

/* Install the handlers. */
void run_signals_start(void);

/*
 * Set the effect of Ctrl-C. With `defer`, the first one only makes run_signals_is_interrupted()
 * return true and the second one ends the program. Otherwise, and at the start, the first one ends
 * it with exit status 130. run_signals_clear_interrupt() resets the count.
 */
void run_signals_defer_interrupt(bool defer);
bool run_signals_is_interrupted(void);
void run_signals_clear_interrupt(void);

/* Ask a terminal not to mark pasted text any more. */
#define RUN_ASK_FOR_NO_MARKS "\033[?2004l"

/*
 * When a signal ends the program, give stdin's terminal its present settings back and ask it not to
 * mark pasted text.
 */
void run_signals_keep_terminal(void);

/* Fill in the signals that end the program. */
void run_signals_that_end(sigset_t *signals);

/* Set the weights whose mappings may fault, and the model's path for the message; or NULL. */
void run_signals_watch(const struct run_weights *weights, const char *model);
