#include "fs/mount/slow_requests.h"

#include <signal.h>
#include <stdlib.h>

/* Argument of a thread; owned by it. */
struct job {
    struct fs_slow_requests *requests;
    struct fs_slow_request slow;
};

void fs_slow_requests_begin(struct fs_slow_requests *requests)
{
    *requests = (struct fs_slow_requests){0};
    pthread_mutex_init(&requests->lock, NULL);
    pthread_cond_init(&requests->changed, NULL);
}

static void count(struct fs_slow_requests *requests, int difference)
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
    struct fs_slow_requests *requests = job->requests;

    job->slow.answer(&job->slow);
    free(job);
    count(requests, -1);
    return NULL;
}

/* Start the thread with signals blocked: those that end the server must reach its main thread. */
static int start(struct job *job)
{
    sigset_t all, before;
    pthread_t thread;
    int result;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&thread, NULL, run, job);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result == 0 ? pthread_detach(thread) : -result;
}

void fs_slow_requests_add(struct fs_slow_requests *requests, const struct fs_slow_request *slow)
{
    struct job *job = malloc(sizeof *job);
    struct fs_slow_request copy = *slow;

    if (job) {
        *job = (struct job){requests, copy};
        count(requests, 1);
        if (start(job) == 0)
            return;
        count(requests, -1);
        free(job);
    }
    copy.answer(&copy);
}

void fs_slow_requests_end(struct fs_slow_requests *requests)
{
    pthread_mutex_lock(&requests->lock);
    while (requests->n_running > 0)
        pthread_cond_wait(&requests->changed, &requests->lock);
    pthread_mutex_unlock(&requests->lock);
    pthread_cond_destroy(&requests->changed);
    pthread_mutex_destroy(&requests->lock);
}
