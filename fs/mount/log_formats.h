/* Log records as bytes for each kind of log. The functions are pure. */
#ifndef GGUFS_FS_LOG_FORMATS_H
#define GGUFS_FS_LOG_FORMATS_H

#include "gguf/support/buffer.h"

#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* One record. The paths may hold any bytes; a member that is NULL or 0 is absent. */
struct fs_log_record {
    struct timespec time;
    pid_t pid;
    int priority;           /* LOG_ERR and so on, of <syslog.h> */
    const char *message;    /* one line of printable text, see gguf_escape() */
    const char *message_id; /* 32 hexadecimal digits, one for each kind of event */
    const char *model;      /* absolute path of the model file */
    const char *mountpoint; /* absolute path */
    const char *file;       /* path in the tree */
    int error;              /* an errno */
    pid_t reader;           /* the process that the record is about */
    uint64_t count;         /* how often the event has occurred */
};

/*
 * Each function appends a record to `out` and returns 0 or -ENOMEM.
 *
 * A line of a log file, with the time in UTC as in RFC 3339.
 */
int fs_log_format_line(const struct fs_log_record *record, struct gguf_buffer *out);

/*
 * A datagram for /dev/log: RFC 3164 without the host name, as the C library writes it. The time is
 * local; call tzset() before the process is confined.
 */
int fs_log_format_syslog(const struct fs_log_record *record, struct gguf_buffer *out);

/*
 * A datagram for /run/systemd/journal/socket, in the native protocol of journald:
 * https://systemd.io/JOURNAL_NATIVE_PROTOCOL/. Paths that are not plain text are written with their
 * length, so that a record always has the fields written here and no others.
 */
int fs_log_format_journal(const struct fs_log_record *record, struct gguf_buffer *out);

#endif
