#include "fs/tree/data/threads.h"

#include "gguf/support/thread_start.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>

int fs_thread_count(uint64_t n_items)
{
    cpu_set_t usable;
    /* It fails beyond 1,024 processors. */
    const int most =
        sched_getaffinity(0, sizeof usable, &usable) == 0 ? CPU_COUNT(&usable) : CPU_SETSIZE;

    return n_items < (uint64_t)most ? (int)n_items : most;
}

void fs_run_threads(int n_threads, void *(*run)(void *user), void *user)
{
    const size_t n_helpers = n_threads > 1 ? (size_t)n_threads - 1 : 0;
    pthread_t *helpers = n_helpers > 0 ? calloc(n_helpers, sizeof *helpers) : NULL;
    size_t n = 0;

    while (helpers && n < n_helpers && gguf_thread_start(&helpers[n], run, user) == 0)
        n++;
    run(user);
    while (n > 0)
        pthread_join(helpers[--n], NULL);
    free(helpers);
}

/* ---- the ordered pipeline ---- */

struct team {
    const struct fs_ordered_pipeline *work;
    size_t n_slots, stride_bytes;
    char *slots;
    pthread_mutex_t lock; /* protects all members below */
    pthread_cond_t changed;
    uint64_t n_taken;
    uint64_t n_finished;
    bool *is_computed; /* for each slot */
    bool is_finishing; /* a thread is calling finish() */
    int result;
};

static void *slot_of(const struct team *team, uint64_t i)
{
    return team->slots + i % team->n_slots * team->stride_bytes;
}

/* Finish all items whose turn has come. Call it with the lock held; finish() runs without it. */
static void finish_computed(struct team *team)
{
    const struct fs_ordered_pipeline *work = team->work;

    if (team->is_finishing)
        return;
    team->is_finishing = true;
    while (team->result == 0 && team->is_computed[team->n_finished % team->n_slots]) {
        const uint64_t i = team->n_finished;
        int result;

        pthread_mutex_unlock(&team->lock);
        result = work->finish(work->user, i, slot_of(team, i));
        pthread_mutex_lock(&team->lock);
        team->result = result;
        team->is_computed[i % team->n_slots] = false;
        team->n_finished++;
        pthread_cond_broadcast(&team->changed);
    }
    team->is_finishing = false;
}

static void *work_on_items(void *user)
{
    struct team *team = user;
    const struct fs_ordered_pipeline *work = team->work;

    pthread_mutex_lock(&team->lock);
    while (team->result == 0 && team->n_taken < work->n_items) {
        uint64_t i;

        if (team->n_taken - team->n_finished >= team->n_slots) {
            pthread_cond_wait(&team->changed, &team->lock);
            continue;
        }
        i = team->n_taken++;
        pthread_mutex_unlock(&team->lock);
        work->compute(work->user, i, slot_of(team, i));
        pthread_mutex_lock(&team->lock);
        team->is_computed[i % team->n_slots] = true;
        finish_computed(team);
    }
    pthread_mutex_unlock(&team->lock);
    return NULL;
}

int fs_ordered_pipeline_run(const struct fs_ordered_pipeline *work)
{
    struct team team = {
        .work = work, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

    if (work->n_items == 0)
        return 0;
    /* 1.5 slots for each thread, so that results can wait for a slower item before them. */
    team.n_slots = (size_t)fs_thread_count(work->n_items) * 3 / 2 + 1;
    if (work->n_items < team.n_slots)
        team.n_slots = (size_t)work->n_items;
    team.stride_bytes =
        (work->slot_bytes + FS_SLOT_ALIGNMENT - 1) & ~(size_t)(FS_SLOT_ALIGNMENT - 1);
    team.slots = aligned_alloc(FS_SLOT_ALIGNMENT, team.n_slots * team.stride_bytes);
    team.is_computed = calloc(team.n_slots, sizeof *team.is_computed);
    if (team.slots && team.is_computed)
        fs_run_threads(fs_thread_count(work->n_items), work_on_items, &team);
    else
        team.result = -ENOMEM;
    free(team.is_computed);
    free(team.slots);
    return team.result;
}
