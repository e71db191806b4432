/*
 * The log of a mount: its start and end, and what goes wrong while it is served. Any thread of the
 * server and the keeper may call fs_log().
 */
#ifndef GGUFS_FS_LOG_H
#define GGUFS_FS_LOG_H

#include "fs/mount/log_target.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* How much is logged. Stderr also gets no notices unless FS_LOG_VERBOSE. */
enum fs_log_level { FS_LOG_NORMAL, FS_LOG_QUIET, FS_LOG_VERBOSE };

enum fs_log_event {
    FS_LOG_MOUNTED,
    FS_LOG_ENDED,
    FS_LOG_DIED,          /* the server */
    FS_LOG_READ_FAILED,   /* the first read that failed for some cause */
    FS_LOG_READ_FAILURES, /* how many have failed by now */
    FS_LOG_OPENED,        /* a file of the tree */
    FS_LOG_SLOW,          /* a request */
    FS_LOG_REOPENED,      /* the log */
    FS_LOG_LOST,          /* records were lost before this one */
    FS_LOG_MISCELLANEOUS, /* other errors */
};

/* The subject of a record, as fields of the journal. */
struct fs_log_about {
    enum fs_log_event event;
    int error;        /* an errno, or 0 */
    const char *file; /* path in the tree, or NULL */
    uint64_t count;   /* number of times, or 0 */
    pid_t reader;     /* the process that made the request, or 0 */
};

struct fs_log_settings {
    enum fs_log_kind kind;
    const char *file; /* of FS_LOG_FILE */
    enum fs_log_level level;
    bool foreground;
    const char *model, *mountpoint; /* absolute paths; must stay valid */
};

/*
 * Open the log, before the process is confined and starts others, which inherit it. Until
 * fs_log_begin(), records still go to stderr. Returns an exit status (sysexits.h), and prints the
 * error to stderr if that is not EX_OK.
 */
int fs_log_open(const struct fs_log_settings *settings);

/* Write to the log from now on, in this process. */
void fs_log_begin(void);

/* Return true if events of this kind are logged. */
bool fs_log_is_wanted(enum fs_log_event event);

/*
 * Write a record of one line. Control characters in the text are escaped. Records that come too
 * fast, or faster than the log takes them, are counted instead.
 */
void fs_log(const struct fs_log_about *about, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void fs_log_list(const struct fs_log_about *about, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

/* Write how many records were lost, if any. Call it last. */
void fs_log_end(void);

/* ---- reopening: after a log file was renamed, or the log's daemon was restarted ---- */

/* Return true if fs_log_reopen() can make a difference. */
bool fs_log_is_reopenable(void);

/*
 * In the keeper: open the log again, pass it to the server and send that SIGHUP, at which it takes
 * it. If opening fails, that is logged, and the old log stays in use. Returns when both processes
 * write to the new log, or after a second.
 */
void fs_log_reopen(pid_t server);

/* In the server: take the log that the keeper passes on SIGHUP. */
void fs_log_accept_reopened(void);

/* The log that fs_log_reopen() opens; the sandbox of the keeper depends on it. */
enum fs_log_kind fs_log_kind(void);

#endif
