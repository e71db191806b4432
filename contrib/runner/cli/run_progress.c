#include "contrib/runner/cli/run_progress.h"

#include "contrib/runner/cli/run_signals.h"
#include "gguf/support/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Bytes read at once, and bytes requested ahead. */
#define CHUNK_BYTES ((uint64_t)8 << 20)

/* Seconds before the progress of a prompt is shown, and between two updates. */
#define DELAY    1.0
#define INTERVAL 0.1

double run_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Return the bytes available without swapping; 0 if unknown. */
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
    /* The start of a mapping, or a multiple of the chunk after it. */
    if (n_bytes > 0)
        madvise((void *)(uintptr_t)data, n_bytes, MADV_WILLNEED);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void touch(const uint8_t *data, uint64_t n_bytes, uint64_t page_bytes,
                  struct gguf_progress *bar, uint64_t done_bytes, uint64_t total_bytes)
{
    ask_for(data, smaller(n_bytes, CHUNK_BYTES));
    for (uint64_t at = 0; at < n_bytes && !run_signals_is_interrupted(); at += CHUNK_BYTES) {
        const uint64_t end = smaller(n_bytes, at + CHUNK_BYTES);

        ask_for(data + end, smaller(n_bytes - end, CHUNK_BYTES));
        for (uint64_t i = at; i < end; i += page_bytes)
            (void)*(const volatile uint8_t *)(data + i);
        gguf_progress_draw(bar, done_bytes + end, total_bytes);
    }
}

void run_progress_touch(const struct run_weights *weights)
{
    const uint64_t total_bytes = run_weights_mapped_bytes(weights);
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    struct gguf_progress bar;
    uint64_t n_bytes, done_bytes = 0;
    const uint8_t *data;

    if (total_bytes == 0 || total_bytes > available_bytes())
        return;
    gguf_progress_start(&bar, "weights");
    bar.drawn = bar.started; /* no bar for work that takes only a moment */
    for (size_t i = 0; run_weights_mapping(weights, i, &data, &n_bytes); i++) {
        touch(data, n_bytes, page_bytes, &bar, done_bytes, total_bytes);
        done_bytes += n_bytes;
    }
    gguf_progress_erase(&bar);
}

/* ---- prompts ---- */

void run_progress_begin(struct run_prompt_progress *progress, size_t n_total)
{
    *progress = (struct run_prompt_progress){.is_shown = n_total > 1 && isatty(STDERR_FILENO),
                                             .next = run_seconds() + DELAY,
                                             .n_total = n_total};
}

void run_progress_batch(struct run_prompt_progress *progress, size_t n_done, size_t n_batch)
{
    progress->n_done = n_done;
    progress->n_batch = n_batch;
}

void run_progress_draw(void *user, uint32_t layer, uint32_t n_layers)
{
    struct run_prompt_progress *progress = user;
    double now;

    if (!progress->is_shown || (now = run_seconds()) < progress->next)
        return;
    progress->next = now + INTERVAL;
    progress->is_drawn = true;
    fprintf(stderr, "\r\033[Kprompt: %zu of %zu tokens",
            progress->n_done + progress->n_batch * layer / n_layers, progress->n_total);
}

void run_progress_end(struct run_prompt_progress *progress)
{
    if (progress->is_drawn)
        fputs("\r\033[K", stderr);
    *progress = (struct run_prompt_progress){0};
}
