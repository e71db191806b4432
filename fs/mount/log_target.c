#include "fs/mount/log_target.h"

#include "fs/mount/datagram_socket.h"
#include "gguf/support/absolute_path.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYSLOG_SOCKET  "/dev/log"
#define JOURNAL_SOCKET "/run/systemd/journal/socket"

/*
 * The sandbox of the keeper allows these flags (gguf/support/confine.h). A pipe without a reader is
 * refused instead of waited for.
 */
static int open_file(const char *path)
{
    const int descriptor = openat(
        AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0640);

    return descriptor < 0 ? -errno : descriptor;
}

int fs_log_target_reopen(const struct fs_log_target *target)
{
    switch (target->kind) {
    case FS_LOG_SYSLOG:
        return fs_datagram_connect(SYSLOG_SOCKET);
    case FS_LOG_JOURNAL:
        return fs_datagram_connect(JOURNAL_SOCKET);
    case FS_LOG_FILE:
        return open_file(target->path);
    case FS_LOG_STDERR:
        return STDERR_FILENO;
    default:
        return -1;
    }
}

/* systemd.exec(5): device and inode of the stream, if systemd connected it to the journal. */
static bool is_stderr_the_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat status;
    uintmax_t device, inode;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

/* Open the first of the kinds that works. */
static void open_default(bool foreground, struct fs_log_target *target)
{
    static const enum fs_log_kind in_background[] = {FS_LOG_JOURNAL, FS_LOG_SYSLOG, FS_LOG_NONE};
    static const enum fs_log_kind in_foreground[] = {FS_LOG_JOURNAL, FS_LOG_STDERR, FS_LOG_NONE};
    const enum fs_log_kind *kind = foreground ? in_foreground : in_background;

    if (foreground && !is_stderr_the_journal())
        kind++;
    for (;; kind++) {
        target->kind = *kind;
        target->descriptor = fs_log_target_reopen(target);
        if (target->descriptor >= 0 || *kind == FS_LOG_NONE)
            break;
    }
}

int fs_log_target_open(enum fs_log_kind kind, const char *file, bool foreground,
                       struct fs_log_target *target)
{
    *target = (struct fs_log_target){.kind = kind, .descriptor = -1};
    if (kind == FS_LOG_DEFAULT) {
        open_default(foreground, target);
        return 0;
    }
    if (kind == FS_LOG_FILE) {
        target->path = gguf_absolute_path(file);
        if (!target->path)
            return -errno;
    }
    target->descriptor = fs_log_target_reopen(target);
    return target->descriptor < 0 ? target->descriptor : 0;
}

bool fs_log_target_is_reopenable(const struct fs_log_target *target)
{
    return target->kind != FS_LOG_STDERR && target->kind != FS_LOG_NONE;
}

/* One call for a record, so that the processes of several mounts can share a file. */
static int write_file(int descriptor, const struct gguf_buffer *bytes)
{
    struct pollfd room = {.fd = descriptor, .events = POLLOUT};

    /* A pipe that nobody empties. */
    if (poll(&room, 1, 0) == 0)
        return -EAGAIN;
    return write(descriptor, bytes->bytes, bytes->length) < 0 ? -errno : 0;
}

static int send_datagram(int descriptor, const struct gguf_buffer *bytes)
{
    return send(descriptor, bytes->bytes, bytes->length, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno
                                                                                          : 0;
}

static int format_for_terminal(const struct fs_log_record *record, struct gguf_buffer *out)
{
    int result = gguf_buffer_add_string(out, "ggufs: ");

    if (result == 0)
        result = gguf_buffer_add_string(out, record->message);
    return result == 0 ? gguf_buffer_add(out, "\n", 1) : result;
}

int fs_log_target_write(const struct fs_log_target *target, const struct fs_log_record *record)
{
    static const struct way {
        int (*format)(const struct fs_log_record *record, struct gguf_buffer *out);
        int (*write)(int descriptor, const struct gguf_buffer *bytes);
    } ways[] = {
        [FS_LOG_STDERR] = {format_for_terminal, write_file},
        [FS_LOG_SYSLOG] = {fs_log_format_syslog, send_datagram},
        [FS_LOG_JOURNAL] = {fs_log_format_journal, send_datagram},
        [FS_LOG_FILE] = {fs_log_format_line, write_file},
    };
    const struct way *way = &ways[target->kind];
    struct gguf_buffer bytes = {0};
    int result;

    if (!way->format)
        return 0; /* FS_LOG_NONE */
    result = way->format(record, &bytes);
    if (result == 0)
        result = way->write(target->descriptor, &bytes);
    gguf_buffer_free(&bytes);
    return result;
}

const char *fs_log_target_name(const struct fs_log_target *target)
{
    switch (target->kind) {
    case FS_LOG_SYSLOG:
        return SYSLOG_SOCKET;
    case FS_LOG_JOURNAL:
        return JOURNAL_SOCKET;
    case FS_LOG_FILE:
        return target->path;
    default:
        return "the log";
    }
}
