/* A progress bar on a terminal; nothing elsewhere. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct gguf_progress {
    bool is_shown;
    int columns; /* of the terminal */
    const char *path;
    struct timespec started, drawn;
};

/*
 * Begins a bar on stderr for work on the file at `path`, which must stay valid. If it is shown and
 * SIGINT has its default action, the signal erases the bar before it ends the process.
 */
void gguf_progress_start(struct gguf_progress *progress, const char *path);

/* Draws the progress, unless it was drawn a moment ago. */
void gguf_progress_draw(struct gguf_progress *progress, uint64_t done_bytes, uint64_t total_bytes);

/* Makes room for other output. */
void gguf_progress_erase(const struct gguf_progress *progress);
