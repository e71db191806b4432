#include "fs/mount/events.h"

#include "fs/mount/datagram_socket.h"
#include "fs/mount/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <syslog.h>
#include <unistd.h>

static const struct {
    int priority;            /* of the record in the log */
    const char *text;        /* start of the record; NULL: none */
    const char *assignments; /* for the service manager; NULL: none */
    char byte;               /* for -o notify_fd; 0: none */
} events[] = {
    [FS_EVENT_MOUNTED] = {LOG_NOTICE, "mounted ", "READY=1", 's'},
    [FS_EVENT_STOPPING] = {.assignments = "STOPPING=1"},
    [FS_EVENT_ENDED] = {LOG_NOTICE, "", .byte = 0},
    [FS_EVENT_DIED] = {LOG_ERR, "the server ", .byte = 0},
    [FS_EVENT_FAILED] = {.byte = 'f'},
};

/* A process has one mount. */
static int manager = -1; /* socket of the service manager */
static int ready = -1;   /* copy of the descriptor of -o notify_fd */

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

void fs_events_open(bool foreground)
{
    const char *name = getenv("NOTIFY_SOCKET");

    if (!foreground || !name || *name == '\0')
        return;
    manager = fs_datagram_connect(name);
    if (manager == -EAFNOSUPPORT)
        fs_complain(name, NULL,
                    "NOTIFY_SOCKET must be an absolute path, or @ and the name of an abstract "
                    "socket; the service manager is not notified");
    else if (manager < 0)
        fs_complain(name, NULL, "NOTIFY_SOCKET: the service manager is not notified: %s",
                    strerror(-manager));
}

/* Write the byte. A reader that has gone is not an error. */
static void write_byte(char byte)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;

    sigaction(SIGPIPE, &ignore, &before);
    (void)!write(ready, &byte, 1);
    sigaction(SIGPIPE, &before, NULL);
    fs_events_close_descriptor();
}

void fs_report_event(enum fs_event event, const char *detail)
{
    if (events[event].text)
        fs_log(events[event].priority, "%s%s", events[event].text, detail);
    /* Waits if the service manager is busy; errors are ignored. */
    if (events[event].assignments && manager >= 0)
        send(manager, events[event].assignments, strlen(events[event].assignments), MSG_NOSIGNAL);
    if (events[event].byte && ready >= 0)
        write_byte(events[event].byte);
}

void fs_events_close(void)
{
    if (manager >= 0)
        close(manager);
    manager = -1;
    fs_events_close_descriptor();
}

void fs_events_close_descriptor(void)
{
    if (ready >= 0)
        close(ready);
    ready = -1;
}
