/*
 * The notify protocol of service managers, sd_notify(3): datagrams to the socket in $NOTIFY_SOCKET.
 * Without that variable, all functions do nothing.
 */
#ifndef GGUFS_FS_NOTIFY_H
#define GGUFS_FS_NOTIFY_H

#include <stdbool.h>

/*
 * Connect to the service manager, before the process is confined. If that fails, print a warning to
 * stderr: the mount is useful nevertheless.
 */
void fs_notify_open(void);

/* Return true if there is a service manager. */
bool fs_notify_is_open(void);

void fs_notify_close(void);

/*
 * Send assignments, separated by line breaks: "READY=1\nSTATUS=…". Control characters in the
 * arguments must be escaped. Waits if the service manager is busy; errors are ignored.
 */
void fs_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
