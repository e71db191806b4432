/* Starts threads with the right signals blocked. All threads of ggufs are made here. */
#pragma once

#include <pthread.h>

/*
 * Start a thread as pthread_create() does, with all signals blocked except faults: SIGBUS, SIGSEGV,
 * SIGFPE and SIGILL. Signals that end the program reach only the main thread; a fault on a mapped
 * file reaches the handler of gguf/faults.h, whatever the caller has blocked. Returns 0 or a
 * negative errno.
 */
int gguf_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);
