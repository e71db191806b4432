#include "fs/mount/log_formats.h"

#include "gguf/support/safe_print.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

static int __attribute__((format(printf, 2, 3)))
add_format(struct gguf_buffer *out, const char *format, ...)
{
    char *text;
    va_list args;
    int length, result;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return -ENOMEM;
    result = gguf_buffer_add(out, text, (size_t)length);
    free(text);
    return result;
}

static const char *priority_name(int priority)
{
    if (priority <= LOG_ERR)
        return "error";
    return priority == LOG_WARNING ? "warning" : priority == LOG_NOTICE ? "notice" : "info";
}

int fs_log_format_line(const struct fs_log_record *record, struct gguf_buffer *out)
{
    struct tm time;
    char text[32];

    gmtime_r(&record->time.tv_sec, &time);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &time);
    return add_format(out, "%s ggufs[%d] %s: %s\n", text, (int)record->pid,
                      priority_name(record->priority), record->message);
}

int fs_log_format_syslog(const struct fs_log_record *record, struct gguf_buffer *out)
{
    struct tm time;
    char text[32];

    localtime_r(&record->time.tv_sec, &time);
    strftime(text, sizeof text, "%b %e %H:%M:%S", &time);
    return add_format(out, "<%d>%s ggufs[%d]: %s", LOG_DAEMON | record->priority, text,
                      (int)record->pid, record->message);
}

static bool is_plain(const char *text, size_t length)
{
    size_t n;

    for (; length > 0; text += n, length -= n) {
        n = gguf_printable_length(text, length);
        if (n == 0)
            return false;
    }
    return true;
}

static int add_field(struct gguf_buffer *out, const char *name, const char *value)
{
    const size_t length = value ? strlen(value) : 0;
    const uint64_t size = htole64(length);
    int result;

    if (!value)
        return 0;
    if (is_plain(value, length))
        return add_format(out, "%s=%s\n", name, value);
    result = add_format(out, "%s\n", name);
    if (result == 0)
        result = gguf_buffer_add(out, &size, sizeof size);
    if (result == 0)
        result = gguf_buffer_add(out, value, length);
    return result == 0 ? gguf_buffer_add(out, "\n", 1) : result;
}

static int add_number(struct gguf_buffer *out, const char *name, uint64_t value)
{
    return value == 0 ? 0 : add_format(out, "%s=%" PRIu64 "\n", name, value);
}

int fs_log_format_journal(const struct fs_log_record *record, struct gguf_buffer *out)
{
    const struct {
        const char *name, *value;
    } fields[] = {
        {"SYSLOG_IDENTIFIER", "ggufs"},           {"MESSAGE", record->message},
        {"MESSAGE_ID", record->message_id},       {"GGUFS_MODEL", record->model},
        {"GGUFS_MOUNTPOINT", record->mountpoint}, {"GGUFS_FILE", record->file},
    };
    int result =
        add_format(out, "PRIORITY=%d\nSYSLOG_FACILITY=%d\n", record->priority, LOG_FAC(LOG_DAEMON));

    for (size_t i = 0; result == 0 && i < sizeof fields / sizeof *fields; i++)
        result = add_field(out, fields[i].name, fields[i].value);
    if (result == 0)
        result = add_number(out, "ERRNO", (uint64_t)record->error);
    /* journald adds OBJECT_EXE and other properties of the process. */
    if (result == 0)
        result = add_number(out, "OBJECT_PID", (uint64_t)record->reader);
    return result == 0 ? add_number(out, "GGUFS_COUNT", record->count) : result;
}
