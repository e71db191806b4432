/*
 * Reads the model's files into memory while they are already being served, so that no read waits
 * for the disk, and locks them there if requested.
 *
 * fs_prefetch_prepare() is called before the processes of a mount are forked. Then the server calls
 * fs_prefetch_lock() before it is confined, and start() and stop(); the user's command calls
 * watch().
 */
#ifndef GGUFS_FS_PREFETCH_H
#define GGUFS_FS_PREFETCH_H

#include "gguf/files.h"
#include "gguf/support/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/*
 * Progress of the server, in memory shared with the user's command. A hostile model may have taken
 * over the server, so values are copied once and checked.
 */
struct fs_prefetch_state {
    _Atomic uint64_t done_bytes;
    _Atomic int result; /* a negative errno if prefetching ended early */
    atomic_bool is_done;
    atomic_bool should_stop;
};

struct fs_prefetch {
    const struct gguf_files *files;
    const struct gguf_model *model; /* set in the server */
    /* shared by the processes; NULL if there is nothing to prefetch */
    struct fs_prefetch_state *state;
    struct gguf_progress progress;
    pthread_t thread;
    bool is_started;
};

/*
 * Make the shared state. If the files do not fit into memory, or something else prevents
 * prefetching, prints that to stderr; the other functions then do nothing.
 */
void fs_prefetch_prepare(struct fs_prefetch *prefetch, const struct gguf_files *files);

/* Lock pages in memory from now on. Prints to stderr if the system refuses. */
void fs_prefetch_lock(struct fs_prefetch *prefetch);

/* Start the thread that prefetches and, on a terminal, shows its progress. */
void fs_prefetch_start(struct fs_prefetch *prefetch, const struct gguf_model *model);

/* End the thread. Call it before the model is closed. */
void fs_prefetch_stop(struct fs_prefetch *prefetch);

/*
 * On a terminal, show the server's progress until it is done, or until the caller's child, the
 * keeper, ends. Elsewhere, return at once.
 */
void fs_prefetch_watch(struct fs_prefetch *prefetch);

void fs_prefetch_end(struct fs_prefetch *prefetch);

#endif
