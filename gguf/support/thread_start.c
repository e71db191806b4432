#include "gguf/support/thread_start.h"

#include <signal.h>
#include <stddef.h>

int gguf_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    /* The kernel kills a process that has a fault while the fault's signal is blocked. */
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL};
    sigset_t blocked, before;
    int result;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    result = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -result;
}
