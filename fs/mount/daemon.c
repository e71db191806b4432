#include "fs/mount/daemon.h"

#include "fs/mount/descriptors.h"
#include "fs/mount/log.h"
#include "fs/mount/sandbox.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <syslog.h>
#include <unistd.h>

/* Time for the server to end before it is killed. */
#define PATIENCE_SECONDS 5

static int fail(const char *what)
{
    fprintf(stderr, "ggufs: %s: %s%s\n", what, strerror(errno),
            errno == EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
    return EX_OSERR;
}

/* Descriptors that the processes of one mount share. */
struct links {
    int null;   /* /dev/null */
    int ready;  /* the server writes a byte here when it serves; -1 in the foreground */
    int keeper; /* one end of a socket: the keeper learns from it that the server has loaded, … */
    int server; /* … and the server receives the mount's descriptors at the other */
    int signals; /* signalfd of the keeper */
};

static void leave_terminal(const struct links *links)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(links->null, i);
}

/* ---- signals ---- */

static const int end_signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};

enum { N_END_SIGNALS = sizeof end_signals / sizeof *end_signals };

/*
 * Block the signals that the keeper waits for: SIGCHLD, and those that request an end, unless the
 * caller had them ignored, as nohup(1) and shells do for background jobs.
 */
static void block_signals(sigset_t *waited_for, sigset_t *before)
{
    sigemptyset(waited_for);
    sigaddset(waited_for, SIGCHLD);
    signal(SIGCHLD, SIG_DFL); /* if ignored, waitpid() would not work */
    for (size_t i = 0; i < N_END_SIGNALS; i++) {
        struct sigaction action;

        if (sigaction(end_signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(waited_for, end_signals[i]);
    }
    sigprocmask(SIG_BLOCK, waited_for, before);
    /* Unblock them in *before: a caller that blocked them could not end its daemon. */
    for (size_t i = 0; i < N_END_SIGNALS; i++)
        sigdelset(before, end_signals[i]);
}

/* Return the next signal, or 0 after `seconds` without one; negative seconds wait for ever. */
static int next_signal(const struct links *links, int seconds)
{
    struct pollfd signals = {.fd = links->signals, .events = POLLIN};
    struct signalfd_siginfo info;

    if (poll(&signals, 1, seconds < 0 ? -1 : 1000 * seconds) <= 0 ||
        read(links->signals, &info, sizeof info) != sizeof info)
        return 0;
    return (int)info.ssi_signo;
}

/* ---- the server ---- */

static int run_server(struct fs_session *session, struct links *links, pid_t keeper)
{
    int status, descriptor;
    char byte;

    close(links->keeper);
    close(links->signals);
    /*
     * In the foreground, killing the process that the user started should end everything. In the
     * background, the tree stays readable without a keeper.
     */
    if (session->mount->options->foreground &&
        (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != keeper))
        return EX_OSERR;
    status = fs_session_prepare(session);
#ifdef __GLIBC__
    /*
     * glibc needs it to cancel a thread, which libfuse does at the end. It would load it then, when
     * the sandbox forbids it or memory may be too short.
     */
    if (status == EX_OK && !dlopen("libgcc_s.so.1", RTLD_NOW)) {
        fprintf(stderr, "ggufs: %s\n", dlerror());
        status = EX_OSERR;
    }
#endif
    if (status == EX_OK && session->mount->options->sandbox && !fs_sandbox_enter_server())
        status = EX_OSERR;
    if (status == EX_OK)
        status = fs_session_load(session);
    if (status != EX_OK)
        return status;
    if (write(links->server, "", 1) != 1)
        return EX_OSERR;
    if (!fs_receive_message(links->server, &byte, 1, &descriptor) || descriptor < 0)
        return EX_OSERR; /* the keeper has printed the reason */
    status = fs_session_begin(session, descriptor);
    if (status != EX_OK)
        return status;
    /* If the keeper has ended, the server serves nevertheless. */
    (void)!write(links->server, "", 1);
    close(links->server);
    if (!session->mount->options->foreground) {
        leave_terminal(links);
        if (write(links->ready, "", 1) != 1)
            return EX_OSERR;
        close(links->ready);
    }
    return fs_session_run(session);
}

/* ---- the keeper ---- */

/*
 * Return true if the server of the file system at a path has died; waits for its answer. The kernel
 * caches attributes, so the query is forced. It must not trigger an automount point: after an
 * automounter has unmounted the tree, that would mount it again.
 */
static bool is_dead(const char *mountpoint)
{
    const int flags = AT_STATX_FORCE_SYNC | AT_NO_AUTOMOUNT;

    return statx(AT_FDCWD, mountpoint, flags, STATX_MODE, &(struct statx){0}) != 0 &&
           errno == ENOTCONN;
}

/* Unmount, and return true on success. If the tree is in use, this fails unless it is `forced`. */
static bool clear_mount(const char *mountpoint, bool forced)
{
    pid_t child;
    int status;

    if (umount2(mountpoint, UMOUNT_NOFOLLOW | (forced ? MNT_DETACH : 0)) == 0)
        return true;
    if (geteuid() == 0)
        return false;
    /* The helper that made the mount may unmount it. */
    child = fork();
    if (child == 0) {
        execlp("fusermount3", "fusermount3", forced ? "-uqz" : "-uq", "--", mountpoint,
               (char *)NULL);
        _exit(EX_UNAVAILABLE);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/*
 * Return true if a signal that the keeper waits for requests an end. SIGHUP does so when a terminal
 * is closed, which a mount in the background does not have.
 */
static bool is_end(struct fs_session *session, int number)
{
    return number != SIGCHLD && !(number == SIGHUP && !session->mount->options->foreground);
}

/*
 * Wait until the server has loaded and return true. Return false if it has ended. A signal that
 * requests an end makes the server end, and is stored in *number, which is 0 otherwise.
 */
static bool wait_for_load(struct fs_session *session, const struct links *links, pid_t server,
                          int *number)
{
    struct pollfd events[] = {{.fd = links->keeper, .events = POLLIN},
                              {.fd = links->signals, .events = POLLIN}};
    char byte;

    *number = 0;
    while (poll(events, 2, -1) > 0 || errno == EINTR) {
        /* After an interrupt there must be no mount, even if it would be ready by now. */
        const int signal_number = events[1].revents ? next_signal(links, 0) : 0;

        if (signal_number > 0 && is_end(session, signal_number)) {
            *number = signal_number;
            kill(server, SIGKILL);
            return false;
        }
        if (events[0].revents)
            return read(links->keeper, &byte, 1) == 1;
    }
    return false;
}

/* Mount and pass /dev/fuse to the server. *is_served is false if the server died. */
static int hand_over(struct fs_session *session, const struct links *links, pid_t server,
                     bool *is_served)
{
    int status = fs_session_mount(session);
    const int descriptor = status == EX_OK ? fuse_session_fd(session->fuse) : -1;
    bool is_sent;
    char byte;

    *is_served = false;
    if (status != EX_OK) {
        kill(server, SIGKILL);
        return status;
    }
    if (session->mount->options->sandbox && !fs_sandbox_enter_keeper(server)) {
        kill(server, SIGKILL);
        status = EX_OSERR;
    }
    is_sent = status == EX_OK && fs_send_message(links->keeper, "", 1, descriptor);
    if (is_sent && read(links->keeper, &byte, 1) == 1) {
        *is_served = true;
        fs_log(LOG_NOTICE, "mounted %s", session->mount->source);
    }
    /*
     * The kernel notices the server's death only if nobody else has /dev/fuse open. The number
     * stays in use, because libfuse closes it later.
     */
    dup3(links->null, descriptor, O_CLOEXEC);
    if (!is_sent)
        clear_mount(session->mountpoint.path, true);
    return status; /* the caller reports a dead server */
}

/* The end of a server. */
struct end {
    int status;        /* of wait(2) */
    int signal_number; /* that requested it; 0: none */
    bool was_idle;     /* the tree was unmounted, because nobody had used it for so long */
};

/* Report the end of a server. Returns its exit status. */
static int report_end(struct fs_session *session, const struct end *end, bool was_served)
{
    char detail[128] = "unmounted";

    if (WIFSIGNALED(end->status))
        snprintf(detail, sizeof detail, "died of signal %d (%s)", WTERMSIG(end->status),
                 strsignal(WTERMSIG(end->status)));
    else if (WEXITSTATUS(end->status) != EX_OK)
        snprintf(detail, sizeof detail, "ended with status %d", WEXITSTATUS(end->status));
    else if (end->signal_number > 0)
        snprintf(detail, sizeof detail, "ended by signal %d (%s)", end->signal_number,
                 strsignal(end->signal_number));
    else if (end->was_idle)
        snprintf(detail, sizeof detail, "unmounted: not used for %u seconds (-o timeout)",
                 session->mount->options->timeout_seconds);
    if (WIFSIGNALED(end->status) || (was_served && WEXITSTATUS(end->status) != EX_OK))
        fs_log(LOG_ERR, "the server %s", detail);
    else if (was_served)
        fs_log(LOG_NOTICE, "%s", detail);
    return WIFSIGNALED(end->status) ? EX_SOFTWARE : WEXITSTATUS(end->status);
}

/* Unmount if the tree was idle for long enough. Returns the seconds until the next attempt. */
static int end_if_idle(struct fs_session *session, bool *was_idle)
{
    const uint64_t idle_seconds = fs_activity_seconds_since(session->server.activity->last_request);

    if (idle_seconds < session->mount->options->timeout_seconds)
        return (int)(session->mount->options->timeout_seconds - idle_seconds);
    /* The kernel knows of open files and working directories. */
    if (clear_mount(session->mountpoint.path, false))
        *was_idle = true;
    return (int)session->mount->options->timeout_seconds;
}

/*
 * Wait for the end of the server and forward signals, which may have reached only the keeper. A
 * server that does not end in time is killed.
 */
static struct end wait_for_end(struct fs_session *session, const struct links *links, pid_t server)
{
    struct end end = {0};
    unsigned seconds_left = 0; /* 0: no end was requested */
    int idle_wait = session->mount->options->timeout_seconds > 0
                        ? (int)session->mount->options->timeout_seconds
                        : -1;

    while (waitpid(server, &end.status, WNOHANG) != server) {
        const int number = next_signal(links, seconds_left > 0 ? 1 : idle_wait);

        if (number > 0 && is_end(session, number)) {
            if (seconds_left == 0) {
                end.signal_number = number;
                seconds_left = PATIENCE_SECONDS;
            }
            kill(server, SIGTERM);
        } else if (number == 0 && seconds_left > 0 && --seconds_left == 0) {
            kill(server, SIGKILL);
            seconds_left = PATIENCE_SECONDS;
        } else if (number == 0 && seconds_left == 0 && idle_wait > 0) {
            idle_wait = end_if_idle(session, &end.was_idle);
        }
    }
    return end;
}

/* Supervise a server from its load to its end. */
static int keep_server(struct fs_session *session, const struct links *links, pid_t server)
{
    struct end end = {0};
    int number, status;
    bool is_served;

    if (!wait_for_load(session, links, server, &number)) {
        waitpid(server, &end.status, 0);
        if (number > 0)
            kill(getpid(), number); /* blocked: fs_daemon_run() */
        return number > 0 ? EX_OSERR : report_end(session, &end, false);
    }
    status = hand_over(session, links, server, &is_served);
    close(links->keeper);
    if (status == EX_OK && !session->mount->options->foreground) {
        prctl(PR_SET_PDEATHSIG, 0); /* set in run_in_background() */
        leave_terminal(links);
        close(links->ready);
    }
    end = wait_for_end(session, links, server);
    if (status == EX_OK)
        status = report_end(session, &end, is_served);
    if (is_dead(session->mountpoint.path))
        clear_mount(session->mountpoint.path, true);
    return status;
}

/* Fork a server and become its keeper. Returns in both processes. */
static int keep(struct fs_session *session, struct links *links, const sigset_t *signals)
{
    const pid_t keeper = getpid();
    int ends[2];
    pid_t server;
    int status;

    /* If the other process or the reader of stderr ends, this process goes on. */
    signal(SIGPIPE, SIG_IGN);
    links->signals = signalfd(-1, signals, SFD_CLOEXEC);
    if (links->signals < 0)
        return fail("signalfd");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        return fail("socketpair");
    links->keeper = ends[0];
    links->server = ends[1];
    server = fork();
    if (server == 0)
        return run_server(session, links, keeper);
    close(links->server);
    if (server > 0)
        status = keep_server(session, links, server);
    else
        status = fail("cannot start the server");
    close(links->signals);
    return status;
}

/* ---- the process that the user started ---- */

static pid_t keeper_of_caller;

/* A signal handler: end the keeper, then this process by the same signal. */
static void end_with_keeper(int number)
{
    kill(keeper_of_caller, SIGTERM);
    signal(number, SIG_DFL);
    raise(number); /* blocked until the handler returns */
}

/* Set the handler of the signals that request an end, unless the caller had them ignored. */
static void handle_end_signals(const sigset_t *waited_for, void (*handler)(int number))
{
    const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    for (size_t i = 0; i < N_END_SIGNALS; i++) {
        if (sigismember(waited_for, end_signals[i]))
            sigaction(end_signals[i], &action, NULL);
    }
}

/* Start a keeper in a session of its own and wait until its server is ready. */
static int run_in_background(struct fs_session *session, struct links *links,
                             const sigset_t *signals)
{
    const pid_t caller = getpid();
    int ready[2];
    size_t n_ready = 0;
    pid_t keeper;
    char byte;
    int end;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return fail("pipe");
    links->ready = ready[1];
    keeper = fork();
    if (keeper == 0) {
        close(ready[0]);
        setsid();
        if (chdir("/") != 0)
            return fail("/");
        signal(SIGHUP, SIG_IGN); /* in the server as well */
        /* Until the tree is ready, interrupting the command should end this process too. */
        if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != caller)
            return EX_OSERR;
        return keep(session, links, signals);
    }
    close(ready[1]);
    if (keeper < 0) {
        close(ready[0]);
        return fail("cannot start the daemon");
    }
    keeper_of_caller = keeper;
    handle_end_signals(signals, end_with_keeper);
    sigprocmask(SIG_SETMASK, &session->signals, NULL);
    /* The pipe ends when both processes have left the terminal, or have died. */
    while (read(ready[0], &byte, 1) == 1)
        n_ready++;
    close(ready[0]);
    if (n_ready == 1) {
        /* A process that dies by a signal has mounted nothing. */
        handle_end_signals(signals, SIG_IGN);
        return EX_OK;
    }
    /* The server has printed the reason. The keeper ends once it has removed the mount. */
    if (waitpid(keeper, &end, 0) != keeper || !WIFEXITED(end) || WEXITSTATUS(end) == EX_OK)
        return EX_OSERR;
    return WEXITSTATUS(end);
}

int fs_daemon_run(struct fs_session *session)
{
    struct links links = {.null = open("/dev/null", O_RDWR | O_CLOEXEC), .ready = -1};
    sigset_t signals;
    int status;

    block_signals(&signals, &session->signals);
    if (links.null < 0)
        return fail("/dev/null");
    status = session->mount->options->foreground ? keep(session, &links, &signals)
                                                 : run_in_background(session, &links, &signals);
    close(links.null);
    return status;
}
