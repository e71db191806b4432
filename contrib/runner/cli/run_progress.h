/* The progress of computing a prompt, shown on a terminal. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The progress of feeding tokens. It is shown once feeding has taken a second. */
struct run_prompt_progress {
    bool is_shown; /* stderr is a terminal */
    bool is_drawn;
    double next;            /* run_seconds() at which the line is drawn again */
    size_t n_total;         /* tokens to feed */
    size_t n_done, n_batch; /* tokens before the current batch, and in it */
};

/* Begin feeding n_total tokens, and a batch of them. */
void run_progress_begin(struct run_prompt_progress *progress, size_t n_total);
void run_progress_batch(struct run_prompt_progress *progress, size_t n_done, size_t n_batch);

/* Draw the line if it is time: an on_layer of the engine, with the progress as `user`. */
void run_progress_draw(void *progress, uint32_t layer, uint32_t n_layers);

/* Erase the line. */
void run_progress_end(struct run_prompt_progress *progress);

/* Seconds of a monotonic clock. */
double run_seconds(void);
