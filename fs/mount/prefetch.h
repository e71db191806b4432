/*
 * Reads the model's files into memory while they are already being served, so that no read waits
 * for the disk.
 */
#pragma once

#include "gguf/files.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct fs_prefetch {
    const struct gguf_model *model;
    pthread_t thread;
    bool is_started;
    atomic_bool should_stop;
};

/*
 * Return true if the files fit into the memory that is available without swapping; otherwise print
 * that to stderr. Call it before the process is confined.
 */
bool fs_prefetch_fits(const struct gguf_files *files);

/* Start a thread that reads the model. Failures are logged. */
void fs_prefetch_start(struct fs_prefetch *prefetch, const struct gguf_model *model);

/* End the thread if it was started. Call it before the model is closed. */
void fs_prefetch_stop(struct fs_prefetch *prefetch);
