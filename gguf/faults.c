#include "gguf/faults.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

/* initial-exec: in a shared library, the first access must not allocate in the handler. */
static _Thread_local sigjmp_buf *fault_exit __attribute__((tls_model("initial-exec")));
static struct sigaction before; /* the handler that the process had */

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    if (fault_exit) {
        /* The jump does not restore the signal mask, which ThreadSanitizer fills. */
        sigset_t faults;

        sigemptyset(&faults);
        sigaddset(&faults, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
        siglongjmp(*fault_exit, 1);
    }
    /* Not a fault in touch(): whoever else expects faults gets it, or the process dies. */
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal_number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal_number);
    } else {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

int gguf_faults_catch(void)
{
    /* SA_NODEFER: we leave the handler by a jump that does not restore the signal mask. */
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_NODEFER | SA_SIGINFO};
    struct sigaction old;
    sigset_t faults;

    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, &old) < 0)
        return -errno;
    if (!(old.sa_flags & SA_SIGINFO) || old.sa_sigaction != on_fault)
        before = old;
    /* A caller may have blocked it; a fault would then kill the process. */
    sigemptyset(&faults);
    sigaddset(&faults, SIGBUS);
    return -pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
}

int gguf_faults_guard(void (*touch)(void *argument), void *argument)
{
    sigjmp_buf here;

    if (sigsetjmp(here, 0)) {
        fault_exit = NULL;
        return -EIO;
    }
    fault_exit = &here;
    touch(argument);
    fault_exit = NULL;
    return 0;
}
