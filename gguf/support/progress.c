#include "gguf/support/progress.h"

#include "gguf/support/safe_print.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LINE_BYTES 256

static double seconds_between(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

/* Erase the line, and let Ctrl-C end the process as before. */
static void erase_at_interrupt(int number)
{
    static const char erase[] = "\r\033[K";

    raise(write(STDERR_FILENO, erase, sizeof erase - 1) < 0 ? SIGTERM : number);
}

void gguf_progress_start(struct gguf_progress *progress, const char *path)
{
    const struct sigaction action = {.sa_handler = erase_at_interrupt,
                                     .sa_flags = (int)SA_RESETHAND};
    struct sigaction before;
    struct winsize window = {0};

    *progress =
        (struct gguf_progress){.is_shown = isatty(STDERR_FILENO), .columns = 80, .path = path};
    /* Done now, because the sandbox forbids it later. */
    if (progress->is_shown && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        progress->columns = window.ws_col;
    if (progress->is_shown && sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGINT, &action, NULL);
    clock_gettime(CLOCK_MONOTONIC, &progress->started);
}

void gguf_progress_erase(const struct gguf_progress *progress)
{
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
}

/* Print a line, which may hold a file name, made safe and cut to the terminal's width. */
static void print_line(const char *line, size_t columns)
{
    char escaped[LINE_BYTES * GGUF_ESCAPED_BYTES];
    size_t n = gguf_escape(line, strlen(line), escaped);

    if (n >= columns) {
        n = columns - 1;
        while (n > 0 && ((unsigned char)escaped[n] & 0xc0) == 0x80) /* inside a character */
            n--;
    }
    fputs("\r\033[K", stderr);
    fwrite(escaped, 1, n, stderr);
}

/* One line: "32 % of 6.0 GB, 0.5 GB/s, 8 s left  model.gguf", cut to the terminal's width. */
void gguf_progress_draw(struct gguf_progress *progress, uint64_t done_bytes, uint64_t total_bytes)
{
    const double done = (double)done_bytes / 1e9, total = (double)total_bytes / 1e9;
    const bool is_small = total < 1;
    struct timespec now;
    double elapsed;
    char line[LINE_BYTES];

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!progress->is_shown || seconds_between(progress->drawn, now) < 0.1 || done_bytes == 0)
        return;
    progress->drawn = now;
    elapsed = seconds_between(progress->started, now);
    snprintf(line, sizeof line, "%3.0f %% of %.1f %s, %.1f GB/s, %.0f s left  %s",
             100 * done / total, is_small ? 1000 * total : total, is_small ? "MB" : "GB",
             done / elapsed, elapsed / done * (total - done), progress->path);
    print_line(line, (size_t)progress->columns);
}
