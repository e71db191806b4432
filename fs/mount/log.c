#include "fs/mount/log.h"

#include "fs/mount/complain.h"
#include "fs/mount/descriptors.h"
#include "fs/mount/log_limit.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sysexits.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

/* The message ids are random; `journalctl MESSAGE_ID=` finds the events by them (ggufs(1)). */
static const struct {
    int priority;
    const char *message_id;
} events[] = {
    [FS_LOG_MOUNTED] = {LOG_NOTICE, "ab79ceffacb7420e8d15661b6586055c"},
    [FS_LOG_ENDED] = {LOG_NOTICE, "acf0c7646b37429a973008ce4f646bfe"},
    [FS_LOG_DIED] = {LOG_ERR, "97fc8e6dcba847f082a515dcc876eb9a"},
    [FS_LOG_READ_FAILED] = {LOG_ERR, "8e8b1557affd4a68987943cc8b6ae2b3"},
    [FS_LOG_READ_FAILURES] = {LOG_NOTICE, "00927413a5cd43a197462663939c0ef6"},
    [FS_LOG_OPENED] = {LOG_INFO, "373962a64d89441d828c4e2e87cd7d47"},
    [FS_LOG_SLOW] = {LOG_INFO, "a61eebc462ae4258870dd083e5940a88"},
    [FS_LOG_REOPENED] = {LOG_NOTICE, "d6012463952f4e67b54661a4fd1182b0"},
    [FS_LOG_LOST] = {LOG_WARNING, "396bc98baff143a4867f7d97048be8d7"},
    [FS_LOG_MISCELLANEOUS] = {LOG_ERR, "94850b41e10141f899c69bf84dd25b3c"},
};

/* Time for the server to take a log that was opened again. */
#define PATIENCE_MILLISECONDS 1000

/* A process has one log. */
static struct fs_log_settings settings;
static struct fs_log_target target = {.kind = FS_LOG_STDERR, .descriptor = STDERR_FILENO};
static int exchange[2] = {-1, -1}; /* a socket: a reopened log goes from the first to the second */
static bool has_begun;

static pthread_mutex_t limit_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fs_log_limit limit; /* protected by the lock */

int fs_log_open(const struct fs_log_settings *wanted)
{
    int result = fs_log_target_open(wanted->kind, wanted->file, wanted->foreground, &target);

    settings = *wanted;
    if (result < 0) {
        fs_complain(target.kind == FS_LOG_FILE && !target.path ? wanted->file
                                                               : fs_log_target_name(&target),
                    NULL, "option -o log: cannot log there: %s%s", strerror(-result),
                    result == -ENXIO ? "; a pipe needs a reader first" : "");
        return target.kind == FS_LOG_FILE ? EX_CANTCREAT : EX_UNAVAILABLE;
    }
    if (fs_log_is_reopenable() &&
        socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, exchange) != 0) {
        fprintf(stderr, "ggufs: socketpair: %s\n", strerror(errno));
        return EX_OSERR;
    }
    tzset(); /* reads a file, which a confined process cannot */
    return EX_OK;
}

void fs_log_begin(void)
{
    has_begun = true;
}

/* ---- records ---- */

static const struct fs_log_target terminal = {.kind = FS_LOG_STDERR, .descriptor = STDERR_FILENO};

static const struct fs_log_target *current_target(void)
{
    return has_begun ? &target : &terminal;
}

static int lowest_priority(enum fs_log_kind kind)
{
    switch (settings.level) {
    case FS_LOG_QUIET:
        return LOG_ERR;
    case FS_LOG_VERBOSE:
        return LOG_INFO;
    default:
        return kind == FS_LOG_STDERR ? LOG_WARNING : LOG_NOTICE;
    }
}

bool fs_log_is_wanted(enum fs_log_event event)
{
    return events[event].priority <= lowest_priority(current_target()->kind);
}

/* Return the text with control characters escaped, for the caller to free, or NULL. */
static char *make_message(bool names_mountpoint, const char *text)
{
    const char *mountpoint = names_mountpoint ? settings.mountpoint : "";
    const size_t length = strlen(text), mountpoint_length = strlen(mountpoint);
    char *message = malloc((mountpoint_length + length) * GGUF_ESCAPED_BYTES + sizeof ": ");
    char *end = message;

    if (!message)
        return NULL;
    end += gguf_escape(mountpoint, mountpoint_length, end);
    if (names_mountpoint)
        end = stpcpy(end, ": ");
    end += gguf_escape(text, length, end);
    *end = '\0';
    return message;
}

static void write_record(const struct fs_log_target *to, const struct fs_log_about *about,
                         const char *text)
{
    char *message = make_message(to->kind != FS_LOG_STDERR, text);
    struct fs_log_record record = {
        .pid = getpid(),
        .priority = events[about->event].priority,
        .message = message,
        .message_id = events[about->event].message_id,
        .model = settings.model,
        .mountpoint = settings.mountpoint,
        .file = about->file,
        .error = about->error,
        .count = about->count,
        .reader = about->reader,
    };
    int result = -ENOMEM;

    clock_gettime(CLOCK_REALTIME, &record.time);
    if (message)
        result = fs_log_target_write(to, &record);
    free(message);
    if (result < 0) {
        pthread_mutex_lock(&limit_lock);
        fs_log_limit_lose(&limit, 1);
        pthread_mutex_unlock(&limit_lock);
    }
}

static void report_lost(const struct fs_log_target *to, uint64_t n_lost)
{
    char text[64];

    if (n_lost == 0)
        return;
    snprintf(text, sizeof text, "%" PRIu64 " records of the log were lost", n_lost);
    write_record(to, &(struct fs_log_about){.event = FS_LOG_LOST, .count = n_lost}, text);
}

/* Return true if a record may be written now, after reporting those that were lost before. */
static bool take_turn(const struct fs_log_target *to)
{
    struct timespec now;
    uint64_t n_lost = 0;
    bool may_write;

    clock_gettime(CLOCK_MONOTONIC, &now);
    pthread_mutex_lock(&limit_lock);
    may_write = fs_log_limit_take(&limit, now.tv_sec, &n_lost);
    pthread_mutex_unlock(&limit_lock);
    report_lost(to, n_lost);
    return may_write;
}

void fs_log_end(void)
{
    uint64_t n_lost;

    pthread_mutex_lock(&limit_lock);
    n_lost = limit.n_lost;
    limit.n_lost = 0;
    pthread_mutex_unlock(&limit_lock);
    report_lost(current_target(), n_lost);
}

void fs_log_list(const struct fs_log_about *about, const char *format, va_list args)
{
    const struct fs_log_target *to = current_target();
    char *text;
    int length;

    if (!fs_log_is_wanted(about->event) || !take_turn(to))
        return;
    length = vasprintf(&text, format, args);
    if (length < 0)
        return;
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    write_record(to, about, text);
    free(text);
}

void fs_log(const struct fs_log_about *about, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fs_log_list(about, format, args);
    va_end(args);
}

/* ---- reopening ---- */

bool fs_log_is_reopenable(void)
{
    return fs_log_target_is_reopenable(&target);
}

enum fs_log_kind fs_log_kind(void)
{
    return target.kind;
}

/* Pass the log to the server, and wait until it writes there. */
static void pass_to_server(int descriptor, pid_t server)
{
    struct pollfd answer = {.fd = exchange[0], .events = POLLIN};
    char byte;

    while (read(exchange[0], &byte, 1) > 0) { /* answers that came too late */
    }
    if (fs_send_descriptors(exchange[0], &descriptor, 1) && kill(server, SIGHUP) == 0)
        poll(&answer, 1, PATIENCE_MILLISECONDS);
}

void fs_log_reopen(pid_t server)
{
    int descriptor;

    if (!fs_log_is_reopenable())
        return;
    descriptor = fs_log_target_reopen(&target);
    if (descriptor < 0) {
        fs_log(&(struct fs_log_about){.event = FS_LOG_MISCELLANEOUS, .error = -descriptor},
               "%s: the log cannot be opened again: %s", fs_log_target_name(&target),
               strerror(-descriptor));
        return;
    }
    pass_to_server(descriptor, server);
    dup3(descriptor, target.descriptor, O_CLOEXEC);
    close(descriptor);
    fs_log(&(struct fs_log_about){.event = FS_LOG_REOPENED}, "opened the log again");
}

/* A signal handler. The number of the log's descriptor stays. */
static void take_reopened(int number)
{
    const int saved = errno;
    int descriptor;

    (void)number;
    while ((descriptor = fs_receive_descriptor(exchange[1])) >= 0) {
        dup3(descriptor, target.descriptor, O_CLOEXEC);
        close(descriptor);
        send(exchange[1], "", 1, MSG_NOSIGNAL);
    }
    errno = saved;
}

void fs_log_accept_reopened(void)
{
    const struct sigaction action = {.sa_handler = take_reopened, .sa_flags = SA_RESTART};

    sigaction(SIGHUP, &action, NULL);
}
