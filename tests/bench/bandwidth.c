/*
 * bench-bandwidth THREADS: prints the bytes per second at which so many threads read memory that no
 * cache can hold, the best of several passes. It limits how fast weights can be read.
 */
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

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

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

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
    const double started = now_seconds();
    unsigned n = 1;

    while (n < n_readers && pthread_create(&readers[n].thread, NULL, read_lines, &readers[n]) == 0)
        n++;
    read_lines(&readers[0]);
    for (unsigned i = 1; i < n; i++)
        pthread_join(readers[i].thread, NULL);
    return n == n_readers ? now_seconds() - started : NAN;
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

int main(int argc, char **argv)
{
    const unsigned n_threads = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    struct reader *readers = calloc(n_threads, sizeof *readers);
    line *lines =
        mmap(NULL, BUFFER_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double result;

    if (n_threads == 0 || !readers || lines == MAP_FAILED) {
        fputs("usage: bench-bandwidth THREADS, with 512 MiB of memory\n", stderr);
        return 1;
    }
    madvise(lines, BUFFER_BYTES, MADV_HUGEPAGE);
    memset(lines, 1, BUFFER_BYTES);
    result = measure(lines, readers, n_threads);
    free(readers);
    printf("%.0f\n", result);
    return isnan(result);
}
