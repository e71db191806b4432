/* How a tree is mounted and served. */
#pragma once

#include "gguf/support/option_rows.h"

#include <stdbool.h>
#include <sys/types.h>

enum fs_log_kind {
    FS_LOG_DEFAULT, /* stderr in the foreground; in the background syslog, if it runs */
    FS_LOG_STDERR,
    FS_LOG_SYSLOG,
};

struct fs_mount_options {
    bool foreground;
    bool sandbox;
    bool nonempty;
    bool direct_io;
    bool keep_cache;       /* the kernel may keep file contents from one open to the next */
    unsigned max_read;     /* bytes; 0: the kernel's default */
    unsigned kept_threads; /* threads that stay when they have nothing to answer */
    uid_t uid;
    gid_t gid;
    mode_t umask;

    unsigned timeout_seconds; /* unmount a tree that was idle for so long; 0: never */
    const char *subdir;       /* the directory of the tree to mount; NULL: its root */

    enum fs_log_kind log;
    bool is_quiet; /* log errors only */

    struct gguf_texts fuse; /* options for libfuse: "-d", or as written after -o */
};
