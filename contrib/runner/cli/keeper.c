#include "contrib/runner/cli/keeper.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/private_mount.h"
#include "contrib/runner/cli/run_signals.h"
#include "gguf/support/exit_status.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

/* The command to rename the temporary file. */
#define COMMIT 'c'

static int fail(const char *what)
{
    run_message("%s: %s", what, strerror(errno));
    return EX_OSERR;
}

/* ---- messages: a number, and optionally a descriptor ---- */

union control_space {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(sizeof(int))];
};

static int send_number(int control, int number, int descriptor)
{
    struct iovec part = {.iov_base = &number, .iov_len = sizeof number};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    union control_space space = {0};

    if (descriptor >= 0) {
        message.msg_control = space.bytes;
        message.msg_controllen = sizeof space.bytes;
        space.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof descriptor),
                                        .cmsg_level = SOL_SOCKET,
                                        .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&space.header), &descriptor, sizeof descriptor);
    }
    return sendmsg(control, &message, MSG_NOSIGNAL) == sizeof number ? 0 : -errno;
}

/* Returns false if the other end is closed. `*descriptor` becomes -1 if none was sent. */
static bool receive_number(int control, int *number, int *descriptor)
{
    struct iovec part = {.iov_base = number, .iov_len = sizeof *number};
    union control_space space = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = space.bytes,
                             .msg_controllen = sizeof space.bytes};
    const struct cmsghdr *header;
    ssize_t n;

    *descriptor = -1;
    do
        n = recvmsg(control, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    return n == sizeof *number;
}

/* ---- the keeper ---- */

/* Give the process a session of its own, which Ctrl-C does not reach, and close its pipes. */
static void begin(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        signal(ends[i], SIG_DFL); /* the signals are blocked; ggufs inherits this disposition */
    signal(SIGBUS, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
    }
}

/*
 * Create a temporary file next to the target, with the permissions of a new file. Returns its
 * descriptor or a negative errno.
 */
static int make_temporary(const char *target, char **temporary)
{
    const mode_t mask = umask(0);
    int fd;

    umask(mask);
    if (asprintf(temporary, "%s.XXXXXX", target) < 0) {
        *temporary = NULL;
        return -ENOMEM;
    }
    fd = mkostemp(*temporary, O_CLOEXEC);
    if (fd < 0) {
        free(*temporary);
        *temporary = NULL;
        return -errno;
    }
    fchmod(fd, 0666 & ~mask);
    return fd;
}

/* Mount and open everything. Returns an exit status and sends it to the other process. */
static int prepare(const struct run_kept *kept, int control, const sigset_t *signals,
                   char **temporary, struct run_private_mount *mount)
{
    int fd = -1, status = EX_OK;

    if (kept->target) {
        fd = make_temporary(kept->target, temporary);
        if (fd < 0) {
            run_message("%s: cannot be written: %s", kept->target, strerror(-fd));
            status = gguf_exit_status(fd);
        }
        send_number(control, status, fd);
        if (fd >= 0)
            close(fd);
    }
    if (status == EX_OK && kept->model) {
        status =
            run_private_mount_start(kept->model, kept->mount_options, signals, control, mount, &fd);
        send_number(control, status, fd);
        if (fd >= 0) {
            close(fd);
            run_private_mount_detach(mount);
        }
    }
    return status;
}

/* Serve the other process until it ends. */
static void serve(const struct run_kept *kept, int control, char **temporary)
{
    char order;
    ssize_t n;

    while ((n = read(control, &order, 1)) == 1 || (n < 0 && errno == EINTR)) {
        if (n < 0 || order != COMMIT || !*temporary)
            continue;
        if (rename(*temporary, kept->target) == 0) {
            free(*temporary);
            *temporary = NULL;
        }
        send_number(control, *temporary ? errno : 0, -1);
    }
}

static int keep(const struct run_kept *kept, int control, const sigset_t *signals)
{
    struct run_private_mount mount = {.messages = -1};
    char *temporary = NULL;

    begin();
    if (prepare(kept, control, signals, &temporary, &mount) == EX_OK)
        serve(kept, control, &temporary);
    if (temporary)
        unlink(temporary);
    free(temporary);
    return run_private_mount_end(&mount);
}

/* Receive a descriptor that the keeper opened. Returns the keeper's exit status. */
static int receive(const struct run_keeper *keeper, int *descriptor)
{
    int status;

    if (receive_number(keeper->control, &status, descriptor))
        return status;
    run_message("the process that mounts the model has ended unexpectedly");
    return EX_OSERR;
}

int run_keeper_start(const struct run_kept *kept, struct run_keeper *keeper, int *target_fd,
                     int *tree_fd)
{
    int ends[2], status = EX_OK;
    sigset_t signals;

    *keeper = (struct run_keeper){.control = -1};
    *target_fd = *tree_fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail("cannot make a socket");
    run_signals_block(&signals);
    keeper->process = fork();
    if (keeper->process == 0) {
        close(ends[0]);
        _exit(keep(kept, ends[1], &signals));
    }
    close(ends[1]);
    keeper->control = ends[0];
    if (keeper->process > 0)
        run_signals_own_keeper(keeper->process, keeper->control);
    run_signals_unblock(&signals);
    if (keeper->process < 0) {
        keeper->process = 0;
        return fail("cannot start a process");
    }
    if (kept->target)
        status = receive(keeper, target_fd);
    if (status == EX_OK && kept->model)
        status = receive(keeper, tree_fd);
    return status;
}

int run_keeper_commit(struct run_keeper *keeper)
{
    const char order = COMMIT;
    int code;
    ssize_t n;

    do
        n = write(keeper->control, &order, 1);
    while (n < 0 && errno == EINTR);
    do
        n = n < 0 ? n : read(keeper->control, &code, sizeof code);
    while (n < 0 && errno == EINTR);
    return n == sizeof code ? -code : -EIO;
}

int run_keeper_end(struct run_keeper *keeper)
{
    int status = EX_OK;
    pid_t ended = 0;

    if (keeper->control >= 0)
        close(keeper->control);
    if (keeper->process > 0)
        do
            ended = waitpid(keeper->process, &status, 0);
        while (ended < 0 && errno == EINTR);
    run_signals_own_keeper(0, -1);
    if (ended > 0)
        status = WIFEXITED(status) ? WEXITSTATUS(status) : EX_OSERR;
    *keeper = (struct run_keeper){.control = -1};
    return status;
}
