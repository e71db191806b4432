#include "contrib/runner/cli/bandwidth.h"

#include "contrib/runner/cli/run_progress.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Larger than caches, and so large that starting the threads takes no time in comparison. */
#define BUFFER_BYTES ((size_t)512 << 20)

/* Distance at which a thread prefetches. */
#define AHEAD_BYTES 4096

#define N_PASSES 6

/* A cache line. */
typedef uint64_t line __attribute__((vector_size(64)));

struct reader {
    pthread_t thread;
    const line *lines;
    size_t n_lines;
    uint64_t sum; /* keeps the compiler from dropping the reads */
};

static void *read_lines(void *argument)
{
    struct reader *reader = argument;
    line sum = {0};

    for (size_t i = 0; i < reader->n_lines; i++) {
        __builtin_prefetch((const char *)&reader->lines[i] + AHEAD_BYTES);
        sum += reader->lines[i];
    }
    reader->sum = sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
    return NULL;
}

/* Return the seconds in which all readers read their lines; NaN if a thread cannot be started. */
static double time_pass(struct reader *readers, unsigned n_readers)
{
    const double started = run_seconds();
    unsigned n = 1;

    while (n < n_readers && pthread_create(&readers[n].thread, NULL, read_lines, &readers[n]) == 0)
        n++;
    read_lines(&readers[0]);
    for (unsigned i = 1; i < n; i++)
        pthread_join(readers[i].thread, NULL);
    return n == n_readers ? run_seconds() - started : NAN;
}

static double measure(const line *lines, struct reader *readers, unsigned n_readers)
{
    const size_t n_lines = BUFFER_BYTES / sizeof *lines / n_readers;
    double fastest = INFINITY;

    for (unsigned i = 0; i < n_readers; i++)
        readers[i] = (struct reader){.lines = lines + i * n_lines, .n_lines = n_lines};
    for (int i = 0; i < N_PASSES && !isnan(fastest); i++) {
        const double seconds = time_pass(readers, n_readers);

        fastest = seconds < fastest || isnan(seconds) ? seconds : fastest;
    }
    return (double)(n_lines * n_readers * sizeof *lines) / fastest;
}

double run_measure_bandwidth(unsigned n_threads)
{
    struct reader *readers = calloc(n_threads, sizeof *readers);
    line *lines =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double result = NAN;

    if (readers && lines != MAP_FAILED) {
        madvise(lines, BUFFER_BYTES, MADV_HUGEPAGE);
        memset(lines, 1, BUFFER_BYTES);
        result = measure(lines, readers, n_threads);
    }
    if (lines != MAP_FAILED)
        munmap(lines, BUFFER_BYTES);
    free(readers);
    return result;
}
