/*
 * The events in the life of a mount, as its log and the program that runs ggufs see them. The
 * keeper reports them; the process that the user started reports FS_EVENT_FAILED.
 *
 * The program has a pipe, -o notify_fd=N, for a byte as from squashfuse: 's' when the tree can be
 * read, or 'f' if it cannot be mounted.
 */
#pragma once

enum fs_event {
    FS_EVENT_MOUNTED, /* the tree can be read; detail: the model */
    FS_EVENT_ENDED,   /* detail: the cause */
    FS_EVENT_DIED,    /* the server; detail: how */
    FS_EVENT_FAILED,  /* nothing was mounted */
};

/*
 * Duplicate the descriptor of -o notify_fd, with FD_CLOEXEC, for the events. Returns 0 or a
 * negative errno; -EBADF if it is not open for writing.
 */
int fs_events_set_descriptor(int descriptor);

/* Return the duplicate, or -1 without -o notify_fd. */
int fs_events_descriptor(void);

/* Report an event. `detail` continues the text of its record; "" if there is nothing to add. */
void fs_report_event(enum fs_event event, const char *detail);

/* Close the descriptor of -o notify_fd: another process reports the events. */
void fs_events_close(void);
