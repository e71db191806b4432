/*
 * The log of a mount: its start and end, and what goes wrong while it is served. Any thread of the
 * server and the keeper may write to it. Also errors about paths before there is a mount.
 */
#pragma once

#include <stdarg.h>

struct fs_mount_options;

/*
 * Open the log, whose records name the mount point, a path that must stay valid. Call it before the
 * process is confined and before it forks. Until fs_log_begin(), records still go to stderr.
 * Returns an exit status (sysexits.h), and prints the error to stderr if that is not EX_OK.
 */
int fs_log_open(const struct fs_mount_options *options, const char *mountpoint);

/* Write to the log from now on, in this process. */
void fs_log_begin(void);

/*
 * Write a record of one line. `priority` is LOG_ERR and so on, of <syslog.h>; stderr gets no
 * notices. Control characters in the text are escaped. A record that stderr cannot accept
 * immediately is dropped.
 */
void fs_log(int priority, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fs_log_list(int priority, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/*
 * Print "ggufs: PATH: " and the message to stderr, with control characters escaped. If `command` is
 * not NULL, append ": COMMAND PATH", a remedy, with the path quoted for a shell.
 */
void fs_complain(const char *path, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
