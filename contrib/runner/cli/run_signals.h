/*
 * Signals: Ctrl-C, the end from outside, and faults of mapped weights. However the program ends,
 * what it has started and made is cleared away: there is one of each, so this is global.
 */
#ifndef GGUFS_RUNNER_RUN_SIGNALS_H
#define GGUFS_RUNNER_RUN_SIGNALS_H

#include "contrib/runner/tree/weights.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/* Installs the handlers. */
void run_signals_start(void);

/*
 * What Ctrl-C does: end the program at once, with status 130, or only ask for an end, which
 * run_signals_is_asked() tells; a second one then ends it at once. At the start it ends it.
 */
void run_signals_ask(bool is_only_asked);
bool run_signals_is_asked(void);
void run_signals_forget(void);

/* Blocks the signals that end the program; the mask as it was goes to `before`. */
void run_signals_block(sigset_t *before);
void run_signals_unblock(const sigset_t *before);

/* Whether one that was blocked waits. */
bool run_signals_is_pending(void);

/* To be ended, and waited for: a process; to be removed: a directory, a file. 0 and NULL: none.
 * The paths are kept, not copied. */
void run_signals_own_process(pid_t process);
void run_signals_own_folder(const char *path);
void run_signals_own_file(const char *path);

/* The weights in whose mappings a fault may be, or NULL. */
void run_signals_watch(const struct run_weights *weights);

#endif
