#include "contrib/runner/cli/private_mount.h"

#include "contrib/runner/cli/run_signals.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <signal.h>
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

/* How often is looked whether ggufs has ended; of a mount the kernel tells. */
#define PAUSE_MS 10

/* How long it may take to end when asked; it has its own patience. */
#define PATIENCE_MS 10000

static int fail(const char *what)
{
    fprintf(stderr, "ggufs-run: %s: %s\n", what, strerror(errno));
    return EX_OSERR;
}

/* A directory that only this user can enter. */
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

/* The ggufs beside this program, or the one in PATH. Returns only if there is neither. */
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
    fprintf(stderr,
            "ggufs-run: ggufs can't be started, neither beside ggufs-run nor from PATH: "
            "%s\n",
            strerror(errno));
}

static _Noreturn void run_server(char **arguments, pid_t parent, int messages,
                                 const sigset_t *signals)
{
    const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /* Ctrl-C is for this program only, and nothing of ggufs belongs to the text on stdout. */
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
        _exit(EX_OSERR);
    dup2(null, STDIN_FILENO);
    if (messages >= 0)
        dup2(messages, STDERR_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
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

/* What ggufs has written, and the user has not seen. */
static void tell_messages(struct run_private_mount *mount)
{
    char bytes[1024];
    ssize_t n;

    while (mount->messages >= 0 &&
           (n = pread(mount->messages, bytes, sizeof bytes, mount->n_told)) > 0) {
        fwrite(bytes, 1, (size_t)n, stderr);
        mount->n_told += n;
    }
}

/* The directory of the tree, if it is there by now; -1 if not. */
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

/* Returns an exit status, or -1 if a signal asks for an end. */
static int wait_for_tree(struct run_private_mount *mount)
{
    struct pollfd mounts = {.fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC),
                            .events = POLLPRI};
    int result = EX_OK;

    while ((mount->fd = open_tree_in(mount->folder)) < 0 && result == EX_OK) {
        int status;

        if (waitpid(mount->server, &status, WNOHANG) == mount->server) {
            mount->server = 0;
            result = WIFEXITED(status) && WEXITSTATUS(status) != EX_OK ? WEXITSTATUS(status)
                                                                       : EX_SOFTWARE;
        } else if (run_signals_is_pending()) {
            result = -1;
        } else {
            poll(&mounts, 1, PAUSE_MS);
        }
    }
    if (mounts.fd >= 0)
        close(mounts.fd);
    return result;
}

/* Out of the file system; who has files open keeps them. False if the directory can't go yet. */
static bool take_out(const char *folder)
{
    if (umount2(folder, UMOUNT_NOFOLLOW | MNT_DETACH) != 0 && errno == EPERM) {
        /* Not root: ask the helper that made the mount. */
        const pid_t child = fork();

        if (child == 0) {
            execlp("fusermount3", "fusermount3", "-u", "-q", "-z", "--", folder, (char *)NULL);
            _exit(EX_UNAVAILABLE);
        }
        if (child > 0)
            waitpid(child, NULL, 0);
    }
    /* If it did not work, ggufs unmounts when it ends, and the directory waits for that. */
    return rmdir(folder) == 0 || errno == ENOENT;
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

int run_private_mount_open(const char *model, const struct run_texts *options,
                           struct run_private_mount *mount)
{
    sigset_t signals;
    int status;

    *mount = (struct run_private_mount){.fd = -1, .messages = -1};
    run_signals_block(&signals);
    mount->folder = make_folder();
    if (!mount->folder) {
        status = fail("no directory to mount on can be made; TMPDIR can name where");
        run_signals_unblock(&signals);
        return status;
    }
    /* Without such a file ggufs writes to stderr itself. */
    mount->messages = memfd_create("ggufs", MFD_CLOEXEC);
    mount->server = start_server(model, options, mount, &signals);
    if (mount->server > 0) {
        status = wait_for_tree(mount);
        tell_messages(mount);
        if (status == EX_OK && take_out(mount->folder)) {
            free(mount->folder);
            mount->folder = NULL;
        }
    } else {
        status = fail("ggufs can't be started");
        mount->server = 0;
    }
    if (status == EX_OK) {
        run_signals_own_process(mount->server);
        run_signals_own_folder(mount->folder);
    } else {
        run_private_mount_close(mount);
    }
    run_signals_unblock(&signals); /* if one waits, it ends the program here */
    return status < 0 ? EX_OSERR : status;
}

void run_private_mount_close(struct run_private_mount *mount)
{
    sigset_t signals;

    run_signals_block(&signals);
    if (mount->fd >= 0)
        close(mount->fd);
    /* Who ends unasked has said why; at an end that was asked for, nobody wants to hear of it. */
    if (mount->server > 0 && waitpid(mount->server, NULL, WNOHANG) == mount->server) {
        tell_messages(mount);
    } else if (mount->server > 0) {
        kill(mount->server, SIGTERM);
        if (!ends_within(mount->server, PATIENCE_MS)) {
            kill(mount->server, SIGKILL);
            waitpid(mount->server, NULL, 0);
        }
    }
    if (mount->folder)
        take_out(mount->folder);
    if (mount->messages >= 0)
        close(mount->messages);
    /* Threads that compute may still take a signal. */
    run_signals_own_process(0);
    run_signals_own_folder(NULL);
    free(mount->folder);
    *mount = (struct run_private_mount){.fd = -1, .messages = -1};
    run_signals_unblock(&signals);
}
