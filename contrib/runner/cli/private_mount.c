#include "contrib/runner/cli/private_mount.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* Interval for checking if the tree is mounted or ggufs has ended. */
#define PAUSE_MS 1

static int fail(const char *what)
{
    run_message("%s: %s", what, strerror(errno));
    return EX_OSERR;
}

/* Make a directory that only this user can enter. */
static char *make_folder(void)
{
    const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp"};

    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *path;

        if (!places[i] || places[i][0] != '/' ||
            asprintf(&path, "%s/ggufs-run-XXXXXX", places[i]) < 0)
            continue;
        if (mkdtemp(path))
            return path;
        free(path);
    }
    return NULL;
}

/* ---- ggufs ---- */

void run_become_ggufs(char **arguments)
{
    char own[PATH_MAX], beside[PATH_MAX + 8];
    const ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

    if (length > 0) {
        own[length] = '\0';
        snprintf(beside, sizeof beside, "%s/ggufs", dirname(own));
        execv(beside, arguments);
    }
    execvp("ggufs", arguments);
    run_message("cannot start ggufs, neither from the directory of ggufs-run nor from PATH: %s",
                strerror(errno));
}

/*
 * ggufs gets a session of its own, which Ctrl-C does not reach, and the signal mask `signals`. It
 * ends with its last open file, and if this process is killed while it mounts.
 */
static _Noreturn void run_server(char **arguments, pid_t parent, int messages,
                                 const sigset_t *signals)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(EX_OSERR);
    setsid();
    if (null >= 0)
        dup2(null, STDIN_FILENO);
    if (messages >= 0)
        dup2(messages, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    sigprocmask(SIG_SETMASK, signals, NULL);
    run_become_ggufs(arguments);
    _exit(EX_UNAVAILABLE);
}

static pid_t start_server(const char *model, const struct gguf_texts *options, char *folder,
                          int messages, const sigset_t *signals)
{
    char **arguments = calloc(2 * options->n_texts + 10, sizeof *arguments);
    const pid_t parent = getpid();
    size_t n = 0;
    pid_t server;

    if (!arguments)
        return -1;
    arguments[n++] = "ggufs";
    arguments[n++] = "-f";
    arguments[n++] = "-o";
    arguments[n++] = "part=model"; /* what llama.cpp would run, of a file of Ollama */
    arguments[n++] = "-o";
    arguments[n++] = "subdir=."; /* one model, not a folder of many */
    for (size_t i = 0; i < options->n_texts; i++) {
        arguments[n++] = "-o";
        arguments[n++] = (char *)(uintptr_t)options->texts[i];
    }
    arguments[n++] = "--";
    arguments[n++] = (char *)(uintptr_t)model;
    arguments[n++] = folder;
    server = fork();
    if (server == 0)
        run_server(arguments, parent, messages, signals);
    free(arguments);
    return server;
}

/* Print what ggufs has written so far. Its later messages are not shown. */
static void show_messages(int messages)
{
    char bytes[1024];
    off_t at = 0;
    ssize_t n;

    while (messages >= 0 && (n = pread(messages, bytes, sizeof bytes, at)) > 0) {
        fwrite(bytes, 1, (size_t)n, stderr);
        at += n;
    }
}

/* ---- waiting ---- */

/* Open the directory of the tree if it is mounted; otherwise return -1. */
static int open_tree_in(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct statfs system;

    if (fd >= 0 && (fstatfs(fd, &system) != 0 || system.f_type != FUSE_SUPER_MAGIC)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Return true if one of the blocked signals has arrived. */
static bool is_signal_pending(void)
{
    sigset_t pending, ends;

    run_signals_that_end(&ends);
    return sigpending(&pending) == 0 && sigandset(&pending, &pending, &ends) == 0 &&
           !sigisemptyset(&pending);
}

/* Wait until the tree is mounted, ggufs ends, or a signal is pending. Returns an exit status. */
static int wait_for_tree(const char *folder, pid_t server, int *tree_fd)
{
    int status = EX_OK, result = EX_OK;

    while (result == EX_OK && (*tree_fd = open_tree_in(folder)) < 0) {
        if (waitpid(server, &status, WNOHANG) == server) {
            result = WIFEXITED(status) && WEXITSTATUS(status) != EX_OK ? WEXITSTATUS(status)
                                                                       : EX_SOFTWARE;
        } else if (is_signal_pending()) {
            kill(server, SIGTERM);
            waitpid(server, NULL, 0);
            result = EX_OSERR;
        } else {
            poll(NULL, 0, PAUSE_MS);
        }
    }
    return result;
}

/* ---- unmounting ---- */

/* Unmount with fusermount3, as libfuse does: users other than root cannot call umount2(). */
static void run_fusermount(const char *folder)
{
    const pid_t child = fork();

    if (child == 0) {
        char *arguments[] = {"fusermount3", "-u", "-z", "--", (char *)(uintptr_t)folder, NULL};

        execvp(arguments[0], arguments);
        execv("/usr/bin/fusermount3", arguments);
        fail("fusermount3");
        _exit(EX_UNAVAILABLE);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Detach the mount, if there is one, and remove the directory. Returns true if it is gone. */
static bool remove_mount(const char *folder)
{
    if (rmdir(folder) == 0 || errno == ENOENT)
        return true;
    if (umount2(folder, UMOUNT_NOFOLLOW | MNT_DETACH) != 0 && errno == EPERM)
        run_fusermount(folder);
    return rmdir(folder) == 0;
}

static int mount_in(const char *model, const struct gguf_texts *options, char *folder,
                    const sigset_t *signals, int *tree_fd)
{
    /* Without this file, ggufs writes to stderr directly. */
    const int messages = memfd_create("ggufs", MFD_CLOEXEC);
    const pid_t server = start_server(model, options, folder, messages, signals);
    int status;

    if (server < 0)
        status = fail("cannot start ggufs");
    else
        status = wait_for_tree(folder, server, tree_fd);
    show_messages(messages);
    if (messages >= 0)
        close(messages);
    if (remove_mount(folder))
        return status;
    run_message("%s: cannot remove the private mount of the model: %s; as root, remove it with: "
                "umount -l %s && rmdir %s",
                folder, strerror(errno), folder, folder);
    if (status == EX_OK) {
        close(*tree_fd);
        kill(server, SIGTERM);
        waitpid(server, NULL, 0);
    }
    *tree_fd = -1;
    return EX_OSERR;
}

int run_private_mount_open(const char *model, const struct gguf_texts *options, int *tree_fd)
{
    char *folder;
    sigset_t ends, signals;
    int status;

    *tree_fd = -1;
    run_signals_that_end(&ends);
    sigprocmask(SIG_BLOCK, &ends, &signals);
    folder = make_folder();
    if (folder)
        status = mount_in(model, options, folder, &signals, tree_fd);
    else
        status = fail("cannot make a directory to mount the model on; TMPDIR says where");
    sigprocmask(SIG_SETMASK, &signals, NULL);
    free(folder);
    return status;
}
