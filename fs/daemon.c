#include "fs/daemon.h"

#include "fs/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

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

/* A mount whose server has died. stat() would not notice: the kernel knows the root's attributes.
 */
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

/* The signals that end a daemon. The keeper hands them on, and lives to clear up. */
static void set_ending_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGCHLD);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGTERM);
}

/* Waits for the server, which may not notice a signal that only the keeper got. */
static int wait_for(pid_t server)
{
    sigset_t signals;
    int status;

    set_ending_signals(&signals);
    for (;;) {
        const int number = sigwaitinfo(&signals, NULL);

        if (number > 0 && number != SIGCHLD)
            kill(server, number);
        if (waitpid(server, &status, WNOHANG) == server)
            return WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
    }
}

static int run_server(const struct fs_daemon *daemon, const struct links *links,
                      const sigset_t *signals)
{
    sigprocmask(SIG_SETMASK, signals, NULL);
    /* In the foreground, who kills the process that they started expects all to end. In the
       background the tree stays readable without a keeper. */
    if (daemon->foreground)
        prctl(PR_SET_PDEATHSIG, SIGTERM);
    /* What the sandbox has to say still goes to the terminal. */
    if (daemon->sandbox)
        fs_sandbox_enter();
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
    sigset_t signals, before;
    pid_t server;
    int status;

    /* Before there is a child, so that no signal is lost between the two. */
    set_ending_signals(&signals);
    sigprocmask(SIG_BLOCK, &signals, &before);
    server = fork();
    if (server == 0)
        return run_server(daemon, links, &before);
    let_go(daemon, links);
    if (server < 0)
        status = fail("can't start the server");
    if (!daemon->foreground) {
        leave_terminal(links->null);
        close(links->ready);
    }
    if (server > 0)
        status = wait_for(server);
    if (is_dead(daemon->mountpoint))
        clear_mount(daemon->mountpoint);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* Starts a keeper in a session of its own and waits until its server is ready. */
static int run_in_background(const struct fs_daemon *daemon, struct links *links)
{
    int ready[2];
    struct statvfs status;
    pid_t keeper;
    size_t n_ready = 0;
    char byte;

    if (pipe2(ready, O_CLOEXEC) != 0)
        return fail("pipe");
    links->ready = ready[1];
    keeper = fork();
    if (keeper == 0) {
        close(ready[0]);
        setsid();
        return chdir("/") == 0 ? keep(daemon, links) : fail("/");
    }
    let_go(daemon, links);
    close(ready[1]);
    if (keeper < 0)
        fail("can't start the daemon");
    /* The end comes when both have left the terminal, or have died. */
    while (read(ready[0], &byte, 1) == 1)
        n_ready++;
    close(ready[0]);
    /* Without the server's byte it has died, and has said why. */
    if (n_ready != 1)
        return EX_OSERR;
    /* The kernel answers when it and the server have agreed. */
    if (statvfs(daemon->mountpoint, &status) == 0)
        return EX_OK;
    fprintf(stderr, "ggufs: the server ended at once; see why with -f\n");
    return EX_OSERR;
}

int fs_daemon_run(const struct fs_daemon *daemon)
{
    struct links links = {.null = open("/dev/null", O_RDWR | O_CLOEXEC)};
    int status;

    if (links.null < 0)
        return fail("/dev/null");
    status = daemon->foreground ? keep(daemon, &links) : run_in_background(daemon, &links);
    close(links.null);
    return status;
}
