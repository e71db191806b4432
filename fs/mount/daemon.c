#include "fs/mount/daemon.h"

#include "fs/mount/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* How long the server may take to end before it is killed. */
#define PATIENCE_SECONDS 5

static int fail(const char *what)
{
    fprintf(stderr, "ggufs: %s: %s\n", what, strerror(errno));
    return EX_OSERR;
}

static void leave_terminal(int null)
{
    for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++)
        dup2(null, i);
}

/* What the processes share. */
struct links {
    int null;  /* /dev/null */
    int ready; /* where the server writes a byte when it serves; not in the foreground */
};

/* The kernel takes the server for dead only when nobody else holds the descriptor. */
static void let_go(const struct fs_daemon *daemon, const struct links *links)
{
    /* Its number stays in use, because libfuse closes it later. */
    dup3(links->null, daemon->fuse_descriptor, O_CLOEXEC);
}

/* Whether a mount's server has died. stat() would not tell: the kernel knows the attributes. */
static bool is_dead(const char *mountpoint)
{
    struct statvfs status;

    return statvfs(mountpoint, &status) < 0 && errno == ENOTCONN;
}

static void clear_mount(const char *mountpoint)
{
    pid_t child;

    if (umount2(mountpoint, UMOUNT_NOFOLLOW | MNT_DETACH) == 0)
        return;
    /* Not root: ask the helper that made the mount. */
    child = fork();
    if (child == 0) {
        execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", mountpoint, (char *)NULL);
        _exit(EX_UNAVAILABLE);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

void fs_daemon_block_signals(sigset_t *before)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGQUIT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, before);
}

/*
 * Waits for the server and hands signals on to it, which it may not have got itself. One that is
 * busy and does not end in time is killed.
 */
static int wait_for(pid_t server, bool foreground)
{
    const struct timespec second = {.tv_sec = 1};
    unsigned seconds_left = 0; /* 0: nobody has asked it to end */
    sigset_t signals;
    int status;

    sigprocmask(SIG_BLOCK, NULL, &signals); /* those that fs_daemon_block_signals() blocks */
    while (waitpid(server, &status, WNOHANG) != server) {
        const int number =
            seconds_left > 0 ? sigtimedwait(&signals, NULL, &second) : sigwaitinfo(&signals, NULL);

        if (number > 0 && number != SIGCHLD) {
            kill(server, SIGTERM);
            if (seconds_left == 0)
                seconds_left = PATIENCE_SECONDS;
        } else if (number < 0 && errno == EAGAIN && seconds_left > 0 && --seconds_left == 0) {
            kill(server, SIGKILL);
            seconds_left = PATIENCE_SECONDS;
        }
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    if (foreground)
        fprintf(stderr, "ggufs: the server died of signal %d\n", WTERMSIG(status));
    return EX_SOFTWARE;
}

/* Print why if the kernel does not confine the process. */
static bool enter_sandbox(void)
{
    const char *step;
    const int result = fs_sandbox_enter(&step);

    if (result < 0)
        fprintf(stderr,
                "ggufs: the server cannot be confined: %s: %s; -o nosandbox serves without a "
                "sandbox\n",
                step, strerror(-result));
    return result == 0;
}

static int run_server(const struct fs_daemon *daemon, const struct links *links, pid_t keeper)
{
    /* In the foreground, who kills the process that they started expects all to end. In the
       background the tree stays readable without a keeper. */
    if (daemon->foreground && (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != keeper))
        return EX_OSERR;
    /* What the sandbox has to say still goes to the terminal. */
    daemon->prepare(daemon->argument);
    if (daemon->sandbox && !enter_sandbox())
        return EX_OSERR;
    if (!daemon->foreground) {
        leave_terminal(links->null);
        if (write(links->ready, "", 1) != 1)
            return EX_OSERR;
        close(links->ready);
    }
    return daemon->serve(daemon->argument);
}

/* Becomes the keeper of a new server. Returns in both. */
static int keep(const struct fs_daemon *daemon, const struct links *links)
{
    const pid_t keeper = getpid();
    pid_t server;
    int status;

    signal(SIGCHLD, SIG_DFL); /* ignored, it would keep us from waiting */
    server = fork();
    if (server == 0)
        return run_server(daemon, links, keeper);
    let_go(daemon, links);
    if (server < 0)
        status = fail("can't start the server");
    if (!daemon->foreground) {
        leave_terminal(links->null);
        close(links->ready);
    }
    if (server > 0 && daemon->foreground)
        daemon->watch(daemon->argument);
    if (server > 0)
        status = wait_for(server, daemon->foreground);
    if (is_dead(daemon->mountpoint))
        clear_mount(daemon->mountpoint);
    return status;
}

/* Starts a keeper in a session of its own and waits until its server is ready. */
static int run_in_background(const struct fs_daemon *daemon, struct links *links)
{
    int ready[2];
    struct statfs status;
    pid_t keeper = -1;
    size_t n_ready = 0;
    char byte;

    if (pipe2(ready, O_CLOEXEC) == 0) {
        links->ready = ready[1];
        keeper = fork();
        if (keeper == 0) {
            close(ready[0]);
            setsid();
            return chdir("/") == 0 ? keep(daemon, links) : fail("/");
        }
        close(ready[1]);
    }
    let_go(daemon, links);
    if (keeper < 0) {
        fail("can't start the daemon");
        clear_mount(daemon->mountpoint);
        return EX_OSERR;
    }
    /* The end comes when both have left the terminal, or have died. */
    while (read(ready[0], &byte, 1) == 1)
        n_ready++;
    close(ready[0]);
    /* The kernel answers when it and the server have agreed; or it is the directory again. */
    if (n_ready == 1 && statfs(daemon->mountpoint, &status) == 0 &&
        status.f_type == FUSE_SUPER_MAGIC) {
        daemon->watch(daemon->argument);
        return EX_OK;
    }
    /* Without its byte the server has said why. */
    if (n_ready == 1)
        fprintf(stderr, "ggufs: the server ended at once; see why with -f\n");
    waitpid(keeper, NULL, 0); /* it ends when it has cleared the mount away */
    return EX_OSERR;
}

int fs_daemon_run(const struct fs_daemon *daemon)
{
    struct links links = {.null = open("/dev/null", O_RDWR | O_CLOEXEC)};
    int status;

    if (links.null < 0) {
        status = fail("/dev/null");
        close(daemon->fuse_descriptor);
        clear_mount(daemon->mountpoint);
        return status;
    }
    status = daemon->foreground ? keep(daemon, &links) : run_in_background(daemon, &links);
    close(links.null);
    return status;
}
