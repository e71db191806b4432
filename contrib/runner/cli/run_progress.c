#include "contrib/runner/cli/run_progress.h"

#include "contrib/runner/cli/run_signals.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* What is asked for at once, and how much of it ahead of the reading. */
#define CHUNK_BYTES ((uint64_t)8 << 20)

struct bar {
    bool is_shown;
    int columns; /* of the terminal */
    uint64_t done_bytes, total_bytes;
    struct timespec started, drawn;
};

static double seconds_between(struct timespec from, struct timespec to)
{
    return (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
}

static void start(struct bar *bar, uint64_t total_bytes)
{
    struct winsize window = {0};

    *bar =
        (struct bar){.is_shown = isatty(STDERR_FILENO), .columns = 80, .total_bytes = total_bytes};
    if (bar->is_shown && ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
        bar->columns = window.ws_col;
    clock_gettime(CLOCK_MONOTONIC, &bar->started);
    bar->drawn = bar->started;
}

/* One line, cut to the terminal's width; the first one only if it takes a moment. */
static void draw(struct bar *bar)
{
    const double done = (double)bar->done_bytes / 1e9, total = (double)bar->total_bytes / 1e9;
    const bool is_small = total < 1;
    struct timespec now;
    double elapsed;
    char line[128];

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!bar->is_shown || seconds_between(bar->drawn, now) < 0.1)
        return;
    bar->drawn = now;
    elapsed = seconds_between(bar->started, now);
    snprintf(line, sizeof line, "weights: %3.0f %% of %.1f %s, %.1f GB/s, %.0f s left",
             100 * done / total, is_small ? 1000 * total : total, is_small ? "MB" : "GB",
             done / elapsed, elapsed / done * (total - done));
    fprintf(stderr, "\r\033[K%.*s", bar->columns - 1, line);
}

/* What can be had without pushing out what other programs use; 0 if the kernel does not tell. */
static uint64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t kib = 0;
    char line[128];

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

static void ask_for(const uint8_t *data, uint64_t n_bytes)
{
    /* It starts a mapping, or lies a multiple of the chunk behind its start. */
    if (n_bytes > 0)
        madvise((void *)(uintptr_t)data, n_bytes, MADV_WILLNEED);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void touch(const uint8_t *data, uint64_t n_bytes, uint64_t page_bytes, struct bar *bar)
{
    ask_for(data, smaller(n_bytes, CHUNK_BYTES));
    for (uint64_t at = 0; at < n_bytes && !run_signals_is_interrupted(); at += CHUNK_BYTES) {
        const uint64_t end = smaller(n_bytes, at + CHUNK_BYTES);

        ask_for(data + end, smaller(n_bytes - end, CHUNK_BYTES));
        for (uint64_t i = at; i < end; i += page_bytes)
            (void)*(const volatile uint8_t *)(data + i);
        bar->done_bytes += end - at;
        draw(bar);
    }
}

void run_progress_touch(const struct run_weights *weights)
{
    const uint64_t total_bytes = run_weights_mapped_bytes(weights);
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct bar bar;
    const uint8_t *data;
    uint64_t n_bytes;

    if (total_bytes == 0 || total_bytes > available_bytes())
        return;
    start(&bar, total_bytes);
    for (size_t i = 0; run_weights_mapping(weights, i, &data, &n_bytes); i++)
        touch(data, n_bytes, page_bytes, &bar);
    if (bar.is_shown)
        fputs("\r\033[K", stderr);
}
