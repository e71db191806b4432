#include "gguf/faults.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>

static _Thread_local sigjmp_buf *fault_exit;

static void on_fault(int signal_number)
{
    if (fault_exit) {
        /* The jump does not restore the signal mask, which ThreadSanitizer fills. */
        sigset_t faults;

        sigemptyset(&faults);
        sigaddset(&faults, signal_number);
        pthread_sigmask(SIG_UNBLOCK, &faults, NULL);
        siglongjmp(*fault_exit, 1);
    }
    /* Not a fault in touch(): die as without a handler. */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int gguf_faults_catch(void)
{
    /* SA_NODEFER: we leave the handler by a jump that does not restore the signal mask. */
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_NODEFER};

    sigset_t faults;

    sigemptyset(&action.sa_mask);
    if (sigaction(SIGBUS, &action, NULL) < 0)
        return -errno;
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
