#include "fs/mount/ready_descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static int ready = -1;

int fs_ready_open(int descriptor)
{
    const int flags = fcntl(descriptor, F_GETFL);

    if (flags < 0)
        return -errno;
    if ((flags & O_ACCMODE) == O_RDONLY)
        return -EBADF;
    /* The daemon lets go of 0, 1 and 2. */
    ready = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return ready < 0 ? -errno : 0;
}

int fs_ready_descriptor(void)
{
    return ready;
}

static void report(char byte)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    if (ready < 0)
        return;
    sigaction(SIGPIPE, &ignore, &before);
    (void)!write(ready, &byte, 1);
    sigaction(SIGPIPE, &before, NULL);
    fs_ready_close();
}

void fs_ready_succeed(void)
{
    report('s');
}

void fs_ready_fail(void)
{
    report('f');
}

void fs_ready_close(void)
{
    if (ready >= 0)
        close(ready);
    ready = -1;
}
