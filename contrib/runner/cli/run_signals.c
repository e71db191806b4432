#include "contrib/runner/cli/run_signals.h"

#include "contrib/runner/cli/messages.h"
#include "gguf/support/safe_print.h"

#include <limits.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sysexits.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t is_deferred, is_interrupted;
static const struct run_weights *volatile watched;
static const char *volatile watched_model;
static struct termios terminal;
static volatile sig_atomic_t is_terminal_kept;

static void on_end(int number)
{
    if (number == SIGINT && is_deferred && !is_interrupted) {
        is_interrupted = 1;
        return;
    }
    if (is_terminal_kept) {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &terminal);
        (void)!write(STDERR_FILENO, RUN_ASK_FOR_NO_MARKS, strlen(RUN_ASK_FOR_NO_MARKS));
    }
    _exit(128 + number);
}

/* Write a text to stderr, escaped. */
static void print(const char *text)
{
    char escaped[GGUF_ESCAPED_BYTES * PATH_MAX];

    (void)!write(STDERR_FILENO, escaped, gguf_escape(text, strnlen(text, PATH_MAX), escaped));
}

/* Several threads may fault at once; the first one prints for all. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    static atomic_flag is_printed = ATOMIC_FLAG_INIT;
    const struct run_weights *weights = watched;
    const char *name = weights ? run_weights_name_at(weights, info->si_addr) : NULL;

    if (!name) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    while (atomic_flag_test_and_set(&is_printed))
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    if (run_message_is_after_text())
        (void)!write(STDERR_FILENO, "\n", 1);
    else if (isatty(STDERR_FILENO)) /* a bar */
        (void)!write(STDERR_FILENO, "\r\033[K", 4);
    print("ggufs-run: ");
    print(watched_model);
    print(": tensors/");
    print(name);
    print("/raw: cannot be read: the disk has an error, or the model was changed or unmounted "
          "meanwhile");
    (void)!write(STDERR_FILENO, "\n", 1);
    _exit(EX_IOERR);
}

/* SIGQUIT keeps its default action. */
void run_signals_that_end(sigset_t *signals)
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

    run_signals_that_end(&action.sa_mask);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction before;

        /* Keep signals ignored if nohup or a script's background job ignored them. */
        if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(ends[i], &action, NULL);
    }
    signal(SIGCHLD, SIG_DFL); /* if it were ignored, waitpid() would not work */
    action = (struct sigaction){.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    run_signals_that_end(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}

void run_signals_defer_interrupt(bool defer)
{
    is_deferred = defer;
}

bool run_signals_is_interrupted(void)
{
    return is_interrupted != 0;
}

void run_signals_clear_interrupt(void)
{
    is_interrupted = 0;
}

void run_signals_keep_terminal(void)
{
    is_terminal_kept = tcgetattr(STDIN_FILENO, &terminal) == 0;
}

void run_signals_watch(const struct run_weights *weights, const char *model)
{
    watched_model = model;
    watched = weights;
}
