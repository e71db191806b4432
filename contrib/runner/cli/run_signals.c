#include "contrib/runner/cli/run_signals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* How long the owned process may take to end; nobody wants to wait for a disk that hangs. */
#define PATIENCE_MS 10000

static volatile sig_atomic_t is_only_asked, is_asked;
static volatile sig_atomic_t owned_process; /* a pid fits */
static const char *volatile owned_folder, *volatile owned_file;
static const struct run_weights *volatile watched;

/* Calls only what may be called in a signal handler. */
static void clear_away(void)
{
    const pid_t process = owned_process;

    if (owned_file)
        unlink(owned_file);
    if (process > 0 && kill(process, SIGTERM) == 0) {
        const struct timespec pause = {.tv_nsec = 1000000};

        for (int i = 0; waitpid(process, NULL, WNOHANG) == 0; i++) {
            if (i == PATIENCE_MS) {
                kill(process, SIGKILL);
                break;
            }
            nanosleep(&pause, NULL);
        }
    }
    if (owned_folder)
        rmdir(owned_folder);
}

static void on_end(int number)
{
    const int error = errno;

    if (number == SIGINT && is_only_asked && !is_asked) {
        is_asked = 1;
        errno = error;
        return;
    }
    clear_away();
    _exit(128 + number);
}

/* Adds to a line, of which nothing is lost. */
static size_t append(char *line, size_t length, size_t capacity, const char *text)
{
    while (*text != '\0' && length < capacity)
        line[length++] = *text++;
    return length;
}

/* Several threads may come here at once; the first one speaks for all. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;
    const struct run_weights *weights = watched;
    const char *name = weights ? run_weights_name_at(weights, info->si_addr) : NULL;
    char line[512];
    size_t length;

    (void)context;
    if (!name) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    while (atomic_flag_test_and_set(&is_told))
        pause();
    length = append(line, 0, sizeof line, "\nggufs-run: tensors/");
    length = append(line, length, sizeof line, name);
    length = append(line, length, sizeof line,
                    "/raw: reading it failed: the model's disk has an error, or the model was "
                    "changed or unmounted meanwhile\n");
    (void)!write(STDERR_FILENO, line, length);
    clear_away();
    _exit(EX_IOERR);
}

/* SIGQUIT does what it always does, but not before the mount is cleared away. */
static void end_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGQUIT);
}

void run_signals_start(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_end};

    end_signals(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction before;

        /* Under nohup, or in the background of a script, they stay ignored. */
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, it would keep us from waiting */
    action = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    end_signals(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void run_signals_ask(bool is_wanted)
{
    is_only_asked = is_wanted;
}

bool run_signals_is_asked(void)
{
    return is_asked != 0;
}

void run_signals_forget(void)
{
    is_asked = 0;
}

void run_signals_block(sigset_t *before)
{
    sigset_t signals;

    end_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, before);
}

void run_signals_unblock(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

bool run_signals_is_pending(void)
{
    sigset_t pending, ends, both;

    end_signals(&ends);
    return sigpending(&pending) == 0 && sigandset(&both, &pending, &ends) == 0 &&
           sigisemptyset(&both) == 0;
}

void run_signals_own_process(pid_t process)
{
    owned_process = process;
}

void run_signals_own_folder(const char *path)
{
    owned_folder = path;
}

void run_signals_own_file(const char *path)
{
    owned_file = path;
}

void run_signals_watch(const struct run_weights *weights)
{
    watched = weights;
}
