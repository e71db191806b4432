#include "fs/mount/log.h"

#include "fs/mount/mount_options.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#define SYSLOG_SOCKET "/dev/log"

/* A process has one log. */
static const char *of_syslog; /* the mount point that records in syslog begin with; NULL: stderr */
static bool is_quiet, has_begun;

int fs_log_open(const struct fs_mount_options *options, const char *mountpoint)
{
    is_quiet = options->is_quiet;
    if (options->log == FS_LOG_STDERR || (options->log == FS_LOG_DEFAULT && options->foreground))
        return EX_OK;
    if (options->log == FS_LOG_SYSLOG && access(SYSLOG_SOCKET, W_OK) != 0) {
        fs_complain(SYSLOG_SOCKET, NULL, "option -o log: cannot log there: %s", strerror(errno));
        return EX_UNAVAILABLE;
    }
    /* Connects now, and reads the time zone: a confined process cannot. */
    openlog("ggufs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    tzset();
    of_syslog = mountpoint;
    return EX_OK;
}

void fs_log_begin(void)
{
    has_begun = true;
}

/* Write a line, unless stderr is a pipe that nobody empties. */
static void write_to_stderr(const char *message)
{
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    char *line;
    const int length = asprintf(&line, "ggufs: %s\n", message);

    if (length < 0)
        return;
    if (poll(&room, 1, 0) == 1)
        (void)!write(STDERR_FILENO, line, (size_t)length);
    free(line);
}

static void write_to_syslog(int priority, const char *message)
{
    char *mountpoint = gguf_escaped(of_syslog);

    if (mountpoint)
        syslog(priority, "%s: %s", mountpoint, message);
    free(mountpoint);
}

void fs_log_list(int priority, const char *format, va_list args)
{
    const bool is_stderr = !has_begun || !of_syslog;
    const int lowest = is_quiet ? LOG_ERR : is_stderr ? LOG_WARNING : LOG_NOTICE;
    char *text, *message;
    int length;

    if (priority > lowest)
        return;
    length = vasprintf(&text, format, args);
    if (length < 0)
        return;
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = '\0';
    message = gguf_escaped(text);
    if (message && is_stderr)
        write_to_stderr(message);
    else if (message)
        write_to_syslog(priority, message);
    free(message);
    free(text);
}

void fs_log(int priority, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fs_log_list(priority, format, args);
    va_end(args);
}

void fs_complain(const char *path, const char *command, const char *format, ...)
{
    va_list args;

    fputs("ggufs: ", stderr);
    gguf_print_safe_string(stderr, path);
    fputs(": ", stderr);
    va_start(args, format);
    gguf_vprint_safe_format(stderr, format, args);
    va_end(args);
    if (command) {
        fprintf(stderr, ": %s ", command);
        gguf_print_shell_word(stderr, path);
    }
    fputc('\n', stderr);
}
