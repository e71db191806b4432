#include "fs/mount/events.h"

#include "fs/mount/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <syslog.h>
#include <unistd.h>

static const struct {
    int priority;     /* of the record in the log */
    const char *text; /* start of the record; NULL: none */
    char byte;        /* for -o notify_fd; 0: none */
} events[] = {
    [FS_EVENT_MOUNTED] = {LOG_NOTICE, "mounted ", 's'},
    [FS_EVENT_ENDED] = {LOG_NOTICE, "", 0},
    [FS_EVENT_DIED] = {LOG_ERR, "the server ", 0},
    [FS_EVENT_FAILED] = {.byte = 'f'},
};

/* A process has one mount. */
static int ready = -1; /* copy of the descriptor of -o notify_fd */

int fs_events_set_descriptor(int descriptor)
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

int fs_events_descriptor(void)
{
    return ready;
}

/* Write the byte. A reader that has gone is not an error. */
static void write_byte(char byte)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    sigaction(SIGPIPE, &ignore, &before);
    (void)!write(ready, &byte, 1);
    sigaction(SIGPIPE, &before, NULL);
    fs_events_close();
}

void fs_report_event(enum fs_event event, const char *detail)
{
    if (events[event].text)
        fs_log(events[event].priority, "%s%s", events[event].text, detail);
    if (events[event].byte && ready >= 0)
        write_byte(events[event].byte);
}

void fs_events_close(void)
{
    if (ready >= 0)
        close(ready);
    ready = -1;
}
