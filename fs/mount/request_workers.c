#include "fs/mount/request_workers.h"

#include "gguf/support/thread_start.h"
#include "gguf/support/times.h"

#include <errno.h>
#include <stdlib.h>

/* How long a request waits for a thread of libfuse before it gets one of its own. */
#define THREAD_WAIT_NANOSECONDS 100000000

/*
 * How long an interrupted reader waits for its data before EINTR, which readers of files do not
 * expect. EINTR is for killed readers that wait for a stalled disk.
 */
#define INTERRUPTED_SECONDS 1

enum state { RUNNING, INTERRUPTED, REPLIED_EINTR, ENDED };

void fs_request_workers_begin(struct fs_request_workers *requests, struct fuse_session *session,
                              unsigned n_threads)
{
    pthread_condattr_t clock;

    *requests = (struct fs_request_workers){.session = session, .n_threads = n_threads};
    pthread_mutex_init(&requests->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&requests->changed, &clock);
    pthread_cond_init(&requests->wake, &clock);
    pthread_condattr_destroy(&clock);
}

/* ---- readers that were interrupted ---- */

static void remove_interrupted(struct fs_request_workers *requests, struct fs_slow_request *slow)
{
    struct fs_slow_request **link = &requests->interrupted;

    while (*link != slow)
        link = &(*link)->next;
    *link = slow->next;
}

/* Reply EINTR to the oldest interrupted request. Called with the lock, which it drops. */
static void reply_eintr(struct fs_request_workers *requests)
{
    struct fs_slow_request *slow = requests->interrupted;
    const fuse_req_t request = slow->request;

    remove_interrupted(requests, slow);
    if (slow->hold)
        slow->hold(slow);
    atomic_store(&slow->state, REPLIED_EINTR);
    pthread_mutex_unlock(&requests->lock);
    fuse_reply_err(request, EINTR);
    pthread_mutex_lock(&requests->lock);
}

static void *watch(void *argument)
{
    struct fs_request_workers *requests = argument;

    pthread_mutex_lock(&requests->lock);
    while (!requests->should_stop) {
        struct timespec now, due;

        if (!requests->interrupted) {
            pthread_cond_wait(&requests->wake, &requests->lock);
            continue;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        due = requests->interrupted->interrupted_at;
        due.tv_sec += INTERRUPTED_SECONDS;
        if (gguf_is_later(due, now))
            pthread_cond_timedwait(&requests->wake, &requests->lock, &due);
        else
            reply_eintr(requests);
    }
    pthread_mutex_unlock(&requests->lock);
    return NULL;
}

/* libfuse calls this, in any of its threads. */
static void on_interrupt(fuse_req_t request, void *argument)
{
    struct fs_slow_request *slow = argument, **link;
    struct fs_request_workers *requests = slow->requests;

    (void)request;
    pthread_mutex_lock(&requests->lock);
    if (atomic_load(&slow->state) == RUNNING) {
        atomic_store(&slow->state, INTERRUPTED);
        clock_gettime(CLOCK_MONOTONIC, &slow->interrupted_at);
        slow->next = NULL;
        for (link = &requests->interrupted; *link;)
            link = &(*link)->next;
        *link = slow;
        if (!requests->has_watcher && !requests->should_stop)
            requests->has_watcher = gguf_thread_start(&requests->watcher, watch, requests) == 0;
        pthread_cond_signal(&requests->wake);
    }
    pthread_mutex_unlock(&requests->lock);
}

bool fs_slow_request_is_given_up(void *slow)
{
    struct fs_slow_request *given_up = slow;

    /* At the end of the mount, all requests are given up, too. */
    return atomic_load_explicit(&given_up->state, memory_order_relaxed) != RUNNING ||
           fuse_session_exited(given_up->requests->session);
}

bool fs_slow_request_end(struct fs_slow_request *slow)
{
    struct fs_request_workers *requests = slow->requests;
    int state;

    pthread_mutex_lock(&requests->lock);
    state = atomic_exchange(&slow->state, ENDED);
    if (state == INTERRUPTED)
        remove_interrupted(requests, slow);
    pthread_mutex_unlock(&requests->lock);
    if (state == REPLIED_EINTR)
        return false;
    /* Waits until on_interrupt(), if it runs, no longer needs `slow`. */
    fuse_req_interrupt_func(slow->request, NULL, NULL);
    return true;
}

/* ---- answers ---- */

static void answer(struct fs_request_workers *requests, struct fs_slow_request *slow)
{
    slow->requests = requests;
    atomic_init(&slow->state, RUNNING);
    fuse_req_interrupt_func(slow->request, on_interrupt, slow);
    slow->answer(slow);
}

/* Argument of a thread; owned by it. */
struct job {
    struct fs_request_workers *requests;
    struct fs_slow_request slow;
};

static void count_running(struct fs_request_workers *requests, int difference)
{
    pthread_mutex_lock(&requests->lock);
    requests->n_running += (unsigned)difference;
    if (requests->n_running == 0)
        pthread_cond_broadcast(&requests->changed);
    pthread_mutex_unlock(&requests->lock);
}

static void *run(void *argument)
{
    struct job *job = argument;
    struct fs_request_workers *requests = job->requests;

    answer(requests, &job->slow);
    free(job);
    count_running(requests, -1);
    return NULL;
}

static int start(struct job *job)
{
    pthread_t thread;
    const int result = gguf_thread_start(&thread, run, job);

    return result == 0 ? pthread_detach(thread) : result;
}

void fs_request_workers_add(struct fs_request_workers *requests, const struct fs_slow_request *slow)
{
    struct job *job = malloc(sizeof *job);
    struct fs_slow_request copy = *slow;

    if (job) {
        *job = (struct job){requests, copy};
        count_running(requests, 1);
        if (start(job) == 0)
            return;
        count_running(requests, -1);
        free(job);
    }
    answer(requests, &copy);
}

/* Occupy one of the n_threads. Returns false if none becomes free. */
static bool occupy_thread(struct fs_request_workers *requests)
{
    struct timespec until;
    bool is_free;

    pthread_mutex_lock(&requests->lock);
    if (requests->n_busy >= requests->n_threads && !requests->is_stalled) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += THREAD_WAIT_NANOSECONDS;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        while (requests->n_busy >= requests->n_threads && !requests->is_stalled)
            requests->is_stalled =
                pthread_cond_timedwait(&requests->changed, &requests->lock, &until) == ETIMEDOUT &&
                requests->n_busy >= requests->n_threads;
    }
    is_free = requests->n_busy < requests->n_threads;
    requests->n_busy += is_free;
    pthread_mutex_unlock(&requests->lock);
    return is_free;
}

static void leave_thread(struct fs_request_workers *requests)
{
    pthread_mutex_lock(&requests->lock);
    if (requests->n_busy-- == requests->n_threads)
        pthread_cond_broadcast(&requests->changed);
    requests->is_stalled = false;
    pthread_mutex_unlock(&requests->lock);
}

void fs_request_workers_answer(struct fs_request_workers *requests,
                               const struct fs_slow_request *slow)
{
    struct fs_slow_request copy = *slow;

    if (occupy_thread(requests)) {
        answer(requests, &copy);
        leave_thread(requests);
    } else {
        fs_request_workers_add(requests, slow);
    }
}

void fs_request_workers_end(struct fs_request_workers *requests)
{
    pthread_mutex_lock(&requests->lock);
    while (requests->n_running > 0)
        pthread_cond_wait(&requests->changed, &requests->lock);
    requests->should_stop = true;
    pthread_cond_signal(&requests->wake);
    pthread_mutex_unlock(&requests->lock);
    if (requests->has_watcher)
        pthread_join(requests->watcher, NULL);
    pthread_cond_destroy(&requests->wake);
    pthread_cond_destroy(&requests->changed);
    pthread_mutex_destroy(&requests->lock);
}
