#include "contrib/runner/cli/messages.h"

#include "gguf/support/safe_print.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static bool is_one_place; /* what goes to stdout and to stderr appears together */
static volatile sig_atomic_t is_after_text;

void run_message_start(void)
{
    struct stat out, err;

    if (fstat(STDOUT_FILENO, &out) != 0 || fstat(STDERR_FILENO, &err) != 0)
        return;
    is_one_place = (out.st_dev == err.st_dev && out.st_ino == err.st_ino) ||
                   (isatty(STDERR_FILENO) && (S_ISFIFO(out.st_mode) || isatty(STDOUT_FILENO)));
}

void run_message_follows_text(bool is_inside_line)
{
    is_after_text = is_inside_line && is_one_place;
}

bool run_message_is_after_text(void)
{
    return is_after_text != 0;
}

void run_message(const char *format, ...)
{
    va_list arguments;

    fputs(is_after_text ? "\nggufs-run: " : "ggufs-run: ", stderr);
    is_after_text = false;
    va_start(arguments, format);
    gguf_vprint_safe_format(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
}

void run_list_add(char *list, size_t list_bytes, const char *between, const char *word)
{
    const size_t length = strlen(list);

    snprintf(list + length, list_bytes - length, "%s%s", length > 0 ? between : "", word);
}

void run_message_progress(const char *format, ...)
{
    va_list arguments;

    if (!isatty(STDERR_FILENO))
        return;
    va_start(arguments, format);
    fputs("\r\033[K", stderr);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

double run_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
