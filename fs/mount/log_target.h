/* The place that log records go to. */
#ifndef GGUFS_FS_LOG_TARGET_H
#define GGUFS_FS_LOG_TARGET_H

#include "fs/mount/log_formats.h"

#include <stdbool.h>

enum fs_log_kind {
    FS_LOG_DEFAULT, /* chosen by fs_log_target_open() */
    FS_LOG_NONE,
    FS_LOG_STDERR,
    FS_LOG_SYSLOG,
    FS_LOG_JOURNAL,
    FS_LOG_FILE,
};

struct fs_log_target {
    enum fs_log_kind kind;
    char *path;     /* of FS_LOG_FILE: absolute; owned */
    int descriptor; /* -1 with FS_LOG_NONE */
};

/*
 * Open a target of this kind; `file` is the path of FS_LOG_FILE, which is created if it does not
 * exist. FS_LOG_DEFAULT in the foreground is the journal if stderr leads there ($JOURNAL_STREAM),
 * else stderr; in the background it is the journal if it runs, else syslog if it runs, else none.
 * Returns 0 or a negative errno.
 */
int fs_log_target_open(enum fs_log_kind kind, const char *file, bool foreground,
                       struct fs_log_target *target);

/* Open the target again. Returns a new descriptor, or a negative errno. */
int fs_log_target_reopen(const struct fs_log_target *target);

/* Return true if reopening the target can make a difference. */
bool fs_log_target_is_reopenable(const struct fs_log_target *target);

/*
 * Write a record. Never waits for the reader of a socket, or of a pipe that is full. Returns 0 or a
 * negative errno; -EAGAIN if the reader is too slow.
 */
int fs_log_target_write(const struct fs_log_target *target, const struct fs_log_record *record);

/* Return the path or name of the target, for messages. */
const char *fs_log_target_name(const struct fs_log_target *target);

#endif
