/*
 * Reads the model's files into memory while they are already served, so that no read waits for the
 * disk, and locks them there if that is asked for.
 *
 * fs_prefetch_prepare() is called before the processes of a mount part. Then the server calls
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
 * What the server tells the user's command, in memory that both share. The server may be in the
 * hands of a hostile model, so its values are copied once and checked.
 */
struct fs_prefetch_state {
    _Atomic uint64_t done_bytes;
    _Atomic int result; /* a negative errno if it ended early */
    atomic_bool is_done;
    atomic_bool should_stop;
};

struct fs_prefetch {
    const struct gguf_files *files;
    const struct gguf_model *model;  /* of the server */
    struct fs_prefetch_state *state; /* shared by the processes; NULL if there is nothing to do */
    struct gguf_progress progress;
    pthread_t thread;
    bool is_started;
};

/*
 * Make what the processes share. If the files do not fit into memory, or something else is in the
 * way, print that to stderr; the other functions then do nothing.
 */
void fs_prefetch_prepare(struct fs_prefetch *prefetch, const struct gguf_files *files);

/* Keep pages in memory once they are there. Print to stderr if the system refuses. */
void fs_prefetch_lock(struct fs_prefetch *prefetch);

/* Start a thread that does the work and, on a terminal, shows how far it is. */
void fs_prefetch_start(struct fs_prefetch *prefetch, const struct gguf_model *model);

/* End the thread; call it before the model is closed. */
void fs_prefetch_stop(struct fs_prefetch *prefetch);

/*
 * On a terminal, show how far the server is until it is done, or until the caller's child, the
 * keeper of the server, ends. Elsewhere return at once.
 */
void fs_prefetch_watch(struct fs_prefetch *prefetch);

void fs_prefetch_end(struct fs_prefetch *prefetch);

#endif
