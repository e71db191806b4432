/*
 * The events in the life of a mount, as its log, the service manager and the program that runs
 * ggufs see them. A table gives the form of each. The keeper reports them; the process that the
 * user started reports FS_EVENT_FAILED.
 *
 * The service manager gets datagrams at the socket in $NOTIFY_SOCKET, sd_notify(3), if ggufs runs
 * in the foreground. The program has a pipe, -o notify_fd=N, for a byte as from squashfuse: 's'
 * when the tree can be read, or 'f' if it cannot be mounted.
 */
#pragma once

#include <stdbool.h>

enum fs_event {
    FS_EVENT_MOUNTED,  /* the tree can be read; detail: the model */
    FS_EVENT_STOPPING, /* a signal requests the end */
    FS_EVENT_ENDED,    /* detail: the cause */
    FS_EVENT_DIED,     /* the server; detail: how */
    FS_EVENT_FAILED,   /* nothing was mounted */
};

/*
 * Duplicate the descriptor of -o notify_fd, with FD_CLOEXEC, for the events. Returns 0 or a
 * negative errno; -EBADF if it is not open for writing.
 */
int fs_events_set_descriptor(int descriptor);

/* Return the duplicate, or -1 without -o notify_fd. */
int fs_events_descriptor(void);

/*
 * Connect to the service manager if there is one and `foreground` is set. If that fails, print a
 * warning to stderr: the mount is useful nevertheless. Call it before the process is confined.
 */
void fs_events_open(bool foreground);

/* Report an event. `detail` continues the text of its record; "" if there is nothing to add. */
void fs_report_event(enum fs_event event, const char *detail);

/* Close the sockets and descriptors in a process that reports no events. */
void fs_events_close(void);

/* Close the descriptor of -o notify_fd: another process reports the failure. */
void fs_events_close_descriptor(void);
