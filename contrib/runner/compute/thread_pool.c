#include "contrib/runner/compute/thread_pool.h"

#include <assert.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * The state of the current region, as one number so that it changes at once: the region's number,
 * the pieces that are free, and the threads that compute a piece. A thread takes a piece by
 * replacing the state. This fails if the region has ended meanwhile, however long the thread was
 * without a processor, unless 2^36 others have begun.
 */
#define WORKING_BITS 13
#define FREE_BITS    15
#define ONE_WORKING  ((uint64_t)1)
#define ONE_FREE     ((uint64_t)1 << WORKING_BITS)
#define ONE_REGION   ((uint64_t)1 << (WORKING_BITS + FREE_BITS))
#define MAX_PIECES   ((1U << FREE_BITS) - 1)

static_assert(RUN_MAX_THREADS < 1 << WORKING_BITS, "a state can count all threads");

/*
 * How often an idle thread looks for work before it sleeps: for some tens of microseconds, which is
 * longer than most work between two regions. Beside busy processes, 0 to 1000 were equally fast.
 */
#define N_LOOKS 1000

/* Bodies keep tiles of some 200 KB on the stack, which is more than the default of some C
 * libraries. */
#define STACK_BYTES ((size_t)2 << 20)

/* Members that change together share a cache line. */
static struct {
    _Alignas(64) _Atomic uint64_t state;
    /* the region; changes only while no piece is free and no thread works */
    run_parallel_body *_Atomic body;
    void *_Atomic context;
    atomic_size_t n, grain; /* number of items, in total and in a piece */
    atomic_uint n_pieces;

    _Alignas(64) atomic_uint n_regions; /* workers sleep until it changes */
    atomic_uint n_sleeping;             /* workers, or soon */
    atomic_uint is_caller_waiting;      /* the caller sleeps until it is 0 */
    atomic_bool is_ending;

    _Alignas(64) unsigned n_workers;
    pthread_t *workers;
} pool;

/* In a body, or in a thread of the pool that runs nothing else. */
static _Thread_local bool is_inside;

static _Thread_local unsigned thread_number;

static unsigned n_free(uint64_t state)
{
    return state / ONE_FREE % (MAX_PIECES + 1U);
}

/* Return true if all pieces are done. */
static bool is_done(uint64_t state)
{
    return state % ONE_REGION == 0;
}

/* Sleep while `*word` is `value`; may return early. */
static void sleep_while(atomic_uint *word, unsigned value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word, unsigned n_threads)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n_threads, NULL, NULL, 0);
}

static void pause_shortly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

struct piece {
    run_parallel_body *body;
    void *context;
    size_t first, end;
};

/* The next free piece. It is valid only if `state` is still the state of the pool. */
static struct piece next_piece(uint64_t state)
{
    const size_t n = atomic_load_explicit(&pool.n, memory_order_relaxed);
    const size_t grain = atomic_load_explicit(&pool.grain, memory_order_relaxed);
    const unsigned n_pieces = atomic_load_explicit(&pool.n_pieces, memory_order_relaxed);
    const size_t first = (n_pieces - n_free(state)) * grain;

    return (struct piece){
        .body = atomic_load_explicit(&pool.body, memory_order_relaxed),
        .context = atomic_load_explicit(&pool.context, memory_order_relaxed),
        .first = first,
        .end = n - first < grain ? n : first + grain,
    };
}

/* Take free pieces and compute them until none is left. Returns the state after that. */
static uint64_t work(void)
{
    uint64_t state = atomic_load(&pool.state), next;
    bool is_working = false;
    struct piece piece;

    while (n_free(state) > 0 || is_working) {
        const bool takes_one = n_free(state) > 0;

        if (takes_one)
            piece = next_piece(state);
        next = state + takes_one * (ONE_WORKING - ONE_FREE) - is_working * ONE_WORKING;
        if (!atomic_compare_exchange_weak(&pool.state, &state, next))
            continue;
        is_working = takes_one;
        if (takes_one)
            piece.body(piece.context, piece.first, piece.end);
        state = takes_one ? atomic_load(&pool.state) : next;
    }
    return state;
}

static bool has_work(void)
{
    return n_free(atomic_load(&pool.state)) > 0 || atomic_load(&pool.is_ending);
}

static void wait_for_work(void)
{
    for (unsigned i = 0; i < N_LOOKS; i++) {
        if (has_work())
            return;
        pause_shortly();
    }
    atomic_fetch_add(&pool.n_sleeping, 1);
    for (;;) {
        const unsigned n_regions = atomic_load(&pool.n_regions);

        if (has_work())
            break;
        sleep_while(&pool.n_regions, n_regions);
    }
    atomic_fetch_sub(&pool.n_sleeping, 1);
}

static void *serve(void *argument)
{
    thread_number = (unsigned)(uintptr_t)argument;
    is_inside = true;
    for (;;) {
        wait_for_work();
        if (atomic_load(&pool.is_ending))
            return NULL;
        if (is_done(work()) && atomic_exchange(&pool.is_caller_waiting, 0))
            wake(&pool.is_caller_waiting, 1);
    }
}

/* Wait until the other threads have finished the pieces that they have taken. */
static void wait_for_others(void)
{
    for (unsigned i = 0; i < N_LOOKS; i++) {
        if (is_done(atomic_load(&pool.state)))
            return;
        pause_shortly();
    }
    for (;;) {
        atomic_store(&pool.is_caller_waiting, 1);
        if (is_done(atomic_load(&pool.state)))
            break;
        sleep_while(&pool.is_caller_waiting, 1);
    }
    atomic_store(&pool.is_caller_waiting, 0);
}

static void begin_region(size_t n, size_t grain, unsigned n_pieces, run_parallel_body *body,
                         void *context)
{
    const uint64_t state = atomic_load_explicit(&pool.state, memory_order_relaxed);

    atomic_store_explicit(&pool.body, body, memory_order_relaxed);
    atomic_store_explicit(&pool.context, context, memory_order_relaxed);
    atomic_store_explicit(&pool.n, n, memory_order_relaxed);
    atomic_store_explicit(&pool.grain, grain, memory_order_relaxed);
    atomic_store_explicit(&pool.n_pieces, n_pieces, memory_order_relaxed);
    atomic_store(&pool.state, state + ONE_REGION + n_pieces * ONE_FREE);
    atomic_fetch_add(&pool.n_regions, 1);
    if (atomic_load(&pool.n_sleeping) > 0)
        wake(&pool.n_regions, n_pieces - 1);
}

/* ---- the interface ---- */

void run_thread_pool_start(unsigned n_threads)
{
    pthread_attr_t attributes;

    if (n_threads <= 1 || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pool.workers = calloc(n_threads - 1, sizeof *pool.workers);
    atomic_store(&pool.is_ending, false);
    while (pool.workers && pool.n_workers < n_threads - 1 &&
           pthread_create(&pool.workers[pool.n_workers], &attributes, serve,
                          (void *)(uintptr_t)(pool.n_workers + 1)) == 0)
        pool.n_workers++;
    pthread_attr_destroy(&attributes);
}

void run_thread_pool_end(void)
{
    atomic_store(&pool.is_ending, true);
    atomic_fetch_add(&pool.n_regions, 1);
    wake(&pool.n_regions, INT_MAX);
    while (pool.n_workers > 0)
        pthread_join(pool.workers[--pool.n_workers], NULL);
    free(pool.workers);
    pool.workers = NULL;
}

unsigned run_thread_pool_size(void)
{
    return pool.n_workers + 1;
}

unsigned run_thread_number(void)
{
    return thread_number;
}

void run_parallel_for(size_t n, size_t grain, run_parallel_body *body, void *context)
{
    const size_t n_grains = n / grain + (n % grain != 0);
    const size_t per_piece = n_grains / MAX_PIECES + 1;

    if (n_grains <= 1 || pool.n_workers == 0 || is_inside) {
        if (n > 0)
            body(context, 0, n);
        return;
    }
    grain *= per_piece;
    is_inside = true;
    begin_region(n, grain, (unsigned)(n / grain + (n % grain != 0)), body, context);
    if (!is_done(work()))
        wait_for_others();
    is_inside = false;
}

struct items {
    run_parallel_item *compute;
    void *context;
};

static void compute_items(void *context, size_t first, size_t end)
{
    const struct items *items = context;

    for (size_t i = first; i < end; i++)
        items->compute(items->context, i);
}

void run_parallel_for_each(size_t n, size_t grain, run_parallel_item *compute, void *context)
{
    struct items items = {compute, context};

    run_parallel_for(n, grain, compute_items, &items);
}

size_t run_grain(size_t n_operations, size_t item_operations)
{
    return item_operations < n_operations ? n_operations / (item_operations + !item_operations) : 1;
}
