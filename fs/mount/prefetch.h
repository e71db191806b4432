/*
 * Brings the model's files into memory while they are served already, so that no read waits for the
 * disk, and locks them there if that is asked for.
 *
 * fs_prefetch_prepare() is called before the processes of a mount part; after that the server calls
 * fs_prefetch_lock(), while it may, start() and stop(), and the user's command watch().
 */
#ifndef GGUFS_FS_PREFETCH_H
#define GGUFS_FS_PREFETCH_H

#include "gguf/support/progress.h"
#include "gguf/model.h"

#include <pthread.h>
#include <stdbool.h>

struct fs_prefetch {
    const struct gguf_model *model;
    struct fs_prefetch_state *state; /* shared by the processes; NULL if there is nothing to do */
    struct gguf_progress progress;
    pthread_t thread;
    bool is_started;
};

/*
 * Makes what the processes share. If the files do not fit into memory, or something else is in the
 * way, says so on stderr and does nothing in the other functions.
 */
void fs_prefetch_prepare(struct fs_prefetch *prefetch, const struct gguf_model *model);

/* Has pages stay in memory once they are there. Says on stderr if the system refuses. */
void fs_prefetch_lock(struct fs_prefetch *prefetch);

/* Starts a thread that does the work and, on a terminal, shows how far it is. */
void fs_prefetch_start(struct fs_prefetch *prefetch);

/* Ends the thread; to be called before the model is closed. */
void fs_prefetch_stop(struct fs_prefetch *prefetch);

/*
 * On a terminal, shows how far the server is until it is done, or until the caller's child, the
 * keeper of the server, ends. Does not wait elsewhere.
 */
void fs_prefetch_watch(struct fs_prefetch *prefetch);

void fs_prefetch_end(struct fs_prefetch *prefetch);

#endif
