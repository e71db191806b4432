#include "fs/mount/error_log.h"

#include "gguf/support/safe_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <syslog.h>
#include <time.h>

static bool is_syslog;

void fs_log_open(bool foreground)
{
    is_syslog = !foreground;
    if (!is_syslog)
        return;
    tzset(); /* reads a file, which syslog() could not do later */
    openlog("ggufs", LOG_PID | LOG_NDELAY, LOG_DAEMON);
}

void fs_log_error_list(const char *format, va_list args)
{
    char *text, *line;
    int length = vasprintf(&text, format, args);

    if (length < 0)
        return;
    while (length > 0 && text[length - 1] == '\n')
        length--;
    line = malloc((size_t)length * GGUF_ESCAPED_BYTES + 1);
    if (line) {
        line[gguf_escape(text, (size_t)length, line)] = '\0';
        if (is_syslog)
            syslog(LOG_ERR, "%s", line);
        else
            fprintf(stderr, "ggufs: %s\n", line);
    }
    free(line);
    free(text);
}

void fs_log_error(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fs_log_error_list(format, args);
    va_end(args);
}
