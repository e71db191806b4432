#include "tests/unit/runner/thread_pool_checks.h"

#include "contrib/runner/compute/thread_pool.h"

#include <dirent.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { MAX_THREADS = 8, MAX_ITEMS = 200001 };

/* A region, and what its bodies have done. */
struct region {
    size_t n, grain;
    void (*work)(size_t item, unsigned thread); /* or NULL */
    uint32_t *counts;                           /* of each item; written without atomics */
    bool is_running[MAX_THREADS];               /* the thread of this number is in a body */
    atomic_uint n_pieces, n_wrong;              /* bodies called, and those with wrong arguments */
};

static void count_items(void *context, size_t first, size_t end)
{
    struct region *region = context;
    const unsigned thread = run_thread_number();
    const size_t n = region->n, grain = region->grain;

    atomic_fetch_add(&region->n_pieces, 1);
    if (first >= end || end > n || thread >= run_thread_pool_size() || region->is_running[thread] ||
        (end - first < n && (first % grain != 0 || (end % grain != 0 && end != n)))) {
        atomic_fetch_add(&region->n_wrong, 1);
        return;
    }
    region->is_running[thread] = true;
    for (size_t i = first; i < end; i++) {
        region->counts[i]++;
        if (region->work)
            region->work(i, thread);
    }
    region->is_running[thread] = false;
}

/* Compute a region. Returns the number of its pieces, or UINT_MAX if something was wrong. */
static unsigned compute(size_t n, size_t grain, void (*work)(size_t, unsigned))
{
    struct region region = {.n = n, .grain = grain, .work = work};
    bool is_wrong;

    region.counts = calloc(n + 1, sizeof *region.counts);
    if (!region.counts)
        return UINT32_MAX;
    run_parallel_for(n, grain, count_items, &region);
    is_wrong = atomic_load(&region.n_wrong) > 0;
    for (size_t i = 0; i < n; i++)
        is_wrong |= region.counts[i] != 1;
    free(region.counts);
    return is_wrong ? UINT32_MAX : atomic_load(&region.n_pieces);
}

static unsigned check_sizes(void)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 64, 1000, 32768, MAX_ITEMS};
    static const size_t grains[] = {1, 2, 3, 16, 999, 300000, SIZE_MAX};
    unsigned n_errors = 0;

    for (size_t i = 0; i < COUNT(sizes); i++)
        for (size_t j = 0; j < COUNT(grains); j++)
            n_errors += compute(sizes[i], grains[j], NULL) == UINT32_MAX;
    return n_errors;
}

static unsigned check_all_sizes(void)
{
    unsigned n_errors = 0;

    for (unsigned n_threads = 1; n_threads <= MAX_THREADS; n_threads++) {
        run_thread_pool_start(n_threads);
        n_errors += run_thread_pool_size() != n_threads;
        n_errors += check_sizes();
        run_thread_pool_end();
        n_errors += run_thread_pool_size() != 1;
    }
    return n_errors;
}

static unsigned check_without_team(void)
{
    unsigned n_errors = check_sizes() + (compute(100, 1, NULL) != 1);

    run_thread_pool_end(); /* without a pool */
    n_errors += compute(100, 1, NULL) != 1;
    return n_errors;
}

static unsigned check_few_items(void)
{
    unsigned n_errors = 0;

    run_thread_pool_start(3);
    n_errors += compute(16, 16, NULL) != 1;
    n_errors += compute(17, 16, NULL) != 2;
    run_thread_pool_end();
    return n_errors;
}

/* Returns true if a thread, by its name in /proc/self/task, sleeps or is the caller. */
static bool is_asleep(const char *thread)
{
    char path[64], text[256] = "";
    const char *state;
    FILE *file;

    if (thread[0] == '.' || atoi(thread) == gettid())
        return true;
    snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
    file = fopen(path, "r");
    if (!file)
        return true; /* it has ended */
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    state = strrchr(text, ')');
    return state && state[2] == 'S';
}

static void wait_until_others_sleep(void)
{
    bool are_asleep;

    do {
        DIR *folder = opendir("/proc/self/task");
        const struct dirent *entry;

        are_asleep = true;
        sched_yield();
        while (folder && (entry = readdir(folder)))
            are_asleep &= is_asleep(entry->d_name);
        if (folder)
            closedir(folder);
    } while (!are_asleep);
}

/* Regions that follow at once, and some after the threads have fallen asleep. */
static unsigned check_short_regions(void)
{
    unsigned n_errors = 0;

    run_thread_pool_start(4);
    for (size_t i = 0; i < 20000; i++) {
        n_errors += compute(i % 13, 1, NULL) == UINT32_MAX;
        if (i % 1000 == 0)
            wait_until_others_sleep();
    }
    run_thread_pool_end();
    return n_errors;
}

static atomic_uint n_by_others;

/* The caller stays in its first item until another thread has computed one. */
static void work_unevenly(size_t item, unsigned thread)
{
    if (thread > 0)
        atomic_fetch_add(&n_by_others, 1);
    else
        while (atomic_load(&n_by_others) == 0)
            sched_yield();
}

static unsigned check_uneven_work(void)
{
    unsigned n_errors = 0;

    run_thread_pool_start(4);
    for (int i = 0; i < 10; i++) {
        atomic_store(&n_by_others, 0);
        n_errors += compute(200, 1, work_unevenly) != 200;
    }
    run_thread_pool_end();
    return n_errors;
}

static atomic_uint n_met;

/* Wait for two other threads. */
static void meet(size_t item, unsigned thread)
{
    atomic_fetch_add(&n_met, 1);
    while (atomic_load(&n_met) < 3)
        sched_yield();
}

static unsigned check_meeting(void)
{
    unsigned n_errors = 0;

    run_thread_pool_start(3);
    for (int i = 0; i < 100; i++) {
        atomic_store(&n_met, 0);
        n_errors += compute(3, 1, meet) != 3;
    }
    run_thread_pool_end();
    return n_errors;
}

static atomic_uint n_nested_errors;

static void compute_inside(size_t item, unsigned thread)
{
    if (compute(50 + item, 1, NULL) != 1)
        atomic_fetch_add(&n_nested_errors, 1);
}

static unsigned check_nested_regions(void)
{
    unsigned n_errors = 0;

    run_thread_pool_start(3);
    n_errors += compute(40, 1, compute_inside) != 40;
    n_errors += compute(40, 1, NULL) != 40; /* divided again */
    run_thread_pool_end();
    return n_errors + atomic_load(&n_nested_errors);
}

/* Bodies see the writes of the caller before the region; the caller sees theirs after it. */
static unsigned check_visibility(void)
{
    enum { N = 1000 };
    static uint32_t counts[N];
    struct region region = {.n = N, .grain = 7, .counts = counts};
    unsigned n_errors = 0;

    run_thread_pool_start(4);
    for (uint32_t pass = 0; pass < 500; pass++) {
        run_parallel_for(N, 7, count_items, &region);
        for (size_t i = 0; i < N; i++)
            n_errors += counts[i]++ != 2 * pass + 1;
    }
    run_thread_pool_end();
    return n_errors + atomic_load(&region.n_wrong);
}

static unsigned check_grains(void)
{
    unsigned n_errors = 0;

    n_errors += run_grain(1000, 0) != 1000;
    n_errors += run_grain(1000, 1) != 1000;
    n_errors += run_grain(1000, 300) != 3;
    n_errors += run_grain(1000, 1000) != 1;
    n_errors += run_grain(1000, SIZE_MAX) != 1;
    return n_errors;
}

void thread_pool_begin_test(void)
{
    run_thread_pool_start(3);
}

const struct thread_pool_check thread_pool_checks[] = {
    {"every item is computed once", check_all_sizes},
    {"without a team the caller computes all", check_without_team},
    {"few items are one piece", check_few_items},
    {"many short regions", check_short_regions},
    {"uneven work is shared", check_uneven_work},
    {"pieces run at the same time", check_meeting},
    {"regions within others", check_nested_regions},
    {"results are visible", check_visibility},
    {"grains", check_grains},
};

const size_t thread_pool_check_count = COUNT(thread_pool_checks);
