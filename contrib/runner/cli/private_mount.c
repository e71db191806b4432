#include "contrib/runner/cli/private_mount.h"

#include "contrib/runner/cli/messages.h"

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
#include <time.h>
#include <unistd.h>

/* Interval for checking if ggufs has ended; the kernel reports a new mount at once. */
#define PAUSE_MS 10

/* Time limit for ggufs to end after SIGTERM, and again after SIGKILL. */
#define PATIENCE_MS 10000

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

/* Execute the ggufs next to this program, or the one in PATH. Returns only if there is neither. */
static void become_ggufs(char **arguments)
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

static _Noreturn void run_server(char **arguments, pid_t parent, int messages,
                                 const sigset_t *signals)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(EX_OSERR);
    if (messages >= 0)
        dup2(messages, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    sigprocmask(SIG_SETMASK, signals, NULL);
    become_ggufs(arguments);
    _exit(EX_UNAVAILABLE);
}

static pid_t start_server(const char *model, const struct run_texts *options,
                          const struct run_private_mount *mount, const sigset_t *signals)
{
    char **arguments = calloc(2 * options->n_texts + 6, sizeof *arguments);
    const pid_t parent = getpid();
    char *path = NULL;
    size_t n = 0;
    pid_t server;

    /* A name that begins with a dash would be an option. */
    if (!arguments || asprintf(&path, "%s%s", model[0] == '-' ? "./" : "", model) < 0) {
        free(arguments);
        return -1;
    }
    arguments[n++] = "ggufs";
    arguments[n++] = "-f";
    for (size_t i = 0; i < options->n_texts; i++) {
        arguments[n++] = "-o";
        arguments[n++] = (char *)(uintptr_t)options->texts[i];
    }
    arguments[n++] = path;
    arguments[n++] = mount->folder;
    server = fork();
    if (server == 0)
        run_server(arguments, parent, mount->messages, signals);
    free(path);
    free(arguments);
    return server;
}

/* Print what ggufs has written since the last call. */
static void show_messages(struct run_private_mount *mount)
{
    char bytes[1024];
    ssize_t n;

    while (mount->messages >= 0 &&
           (n = pread(mount->messages, bytes, sizeof bytes, mount->bytes_shown)) > 0) {
        fwrite(bytes, 1, (size_t)n, stderr);
        mount->bytes_shown += n;
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

/*
 * Wait until the tree is mounted, ggufs ends, or the other end of `control` is closed. Returns an
 * exit status.
 */
static int wait_for_tree(struct run_private_mount *mount, int control, int *tree_fd)
{
    struct pollfd events[] = {
        {.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), .events = POLLPRI},
        {.fd = control, .events = POLLIN},
    };
    int result = EX_OK;

    while (result == EX_OK && (*tree_fd = open_tree_in(mount->folder)) < 0) {
        int status;

        if (waitpid(mount->server, &status, WNOHANG) == mount->server) {
            mount->server = 0;
            result = WIFEXITED(status) && WEXITSTATUS(status) != EX_OK ? WEXITSTATUS(status)
                                                                       : EX_SOFTWARE;
        } else if (events[1].revents != 0) {
            result = EX_OSERR;
        } else {
            poll(events, 2, PAUSE_MS);
        }
    }
    if (events[0].fd >= 0)
        close(events[0].fd);
    return result;
}

static bool ends_within(pid_t server, int limit_ms)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < limit_ms; i++) {
        if (waitpid(server, NULL, WNOHANG) != 0)
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* ---- unmounting ---- */

/*
 * Unmount with fusermount3, as libfuse does, because users other than root cannot call umount2().
 */
static void run_fusermount(const char *folder, bool is_quiet)
{
    const pid_t child = fork();

    if (child == 0) {
        char *arguments[] = {"fusermount3", "-u", "-z", "--", (char *)(uintptr_t)folder, NULL};
        const int null = is_quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

        if (null >= 0)
            dup2(null, STDERR_FILENO);
        execvp(arguments[0], arguments);
        execv("/usr/bin/fusermount3", arguments);
        fail("fusermount3");
        _exit(EX_UNAVAILABLE);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
}

/* Unmount and remove the directory. Returns true if it is gone. */
static bool remove_mount(const char *folder, bool is_quiet)
{
    if (rmdir(folder) == 0 || errno == ENOENT)
        return true;
    if (umount2(folder, UMOUNT_NOFOLLOW | MNT_DETACH) != 0 && errno == EPERM)
        run_fusermount(folder, is_quiet);
    return rmdir(folder) == 0;
}

int run_private_mount_start(const char *model, const struct run_texts *options,
                            const sigset_t *signals, int control, struct run_private_mount *mount,
                            int *tree_fd)
{
    int status;

    *tree_fd = -1;
    *mount = (struct run_private_mount){.messages = -1, .folder = make_folder()};
    if (!mount->folder)
        return fail("cannot make a directory to mount the model on; TMPDIR says where");
    /* Without this file, ggufs writes to stderr directly. */
    mount->messages = memfd_create("ggufs", MFD_CLOEXEC);
    mount->server = start_server(model, options, mount, signals);
    if (mount->server < 0) {
        mount->server = 0;
        return fail("cannot start ggufs");
    }
    status = wait_for_tree(mount, control, tree_fd);
    show_messages(mount);
    return status;
}

void run_private_mount_detach(struct run_private_mount *mount)
{
    if (remove_mount(mount->folder, true)) {
        free(mount->folder);
        mount->folder = NULL;
    }
}

int run_private_mount_end(struct run_private_mount *mount)
{
    int status = EX_OK;

    /*
     * If ggufs ended by itself, its messages give the reason. Messages after SIGTERM do not matter.
     */
    if (mount->server > 0 && waitpid(mount->server, NULL, WNOHANG) == mount->server) {
        show_messages(mount);
    } else if (mount->server > 0) {
        kill(mount->server, SIGTERM);
        if (!ends_within(mount->server, PATIENCE_MS)) {
            kill(mount->server, SIGKILL);
            if (!ends_within(mount->server, PATIENCE_MS)) {
                run_message("ggufs, process %d, does not end", (int)mount->server);
                status = EX_OSERR;
            }
        }
    }
    if (mount->folder && !remove_mount(mount->folder, false)) {
        run_message(
            "%s: cannot remove the private mount of the model: %s; as root, remove it with: "
            "umount -l %s && rmdir %s",
            mount->folder, strerror(errno), mount->folder, mount->folder);
        status = EX_OSERR;
    }
    if (mount->messages >= 0)
        close(mount->messages);
    free(mount->folder);
    *mount = (struct run_private_mount){.messages = -1};
    return status;
}
