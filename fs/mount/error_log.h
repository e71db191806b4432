/*
 * The error log of a mount's processes while it is served: stderr in the foreground, the system log
 * in the background. Any thread may call fs_log_error().
 */
#ifndef GGUFS_FS_ERROR_LOG_H
#define GGUFS_FS_ERROR_LOG_H

#include <stdarg.h>
#include <stdbool.h>

/*
 * Choose where errors go. In the background this connects to the system log at once, because a
 * confined process cannot. If the log's daemon is restarted, later reports are lost.
 */
void fs_log_open(bool foreground);

/* Report an error in one line, with control characters escaped. */
void fs_log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fs_log_error_list(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

#endif
