#include "contrib/runner/cli/run_progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Seconds before the progress of a prompt is shown, and between two updates. */
#define DELAY    1.0
#define INTERVAL 0.1

double run_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

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
