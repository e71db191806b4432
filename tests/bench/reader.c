/*
 * Times one kind of access to a file: bench-reader ACCESS READERS BYTES FILE
 *
 *   cold    read(2) of 1 MiB; no page of the file is in the page cache
 *   hot     the same, four passes; every page is in the page cache
 *   direct  the same with O_DIRECT
 *   mmap    reads every word of a mapping; no page is in the page cache
 *   random  pread(2) of 4 KiB in random order, each page at most once; none is in the page cache
 *
 * READERS threads read one part of the file each. The time excludes opening, mapping and preparing
 * the page cache. The program repeats the access until it has read BYTES. It prints bytes and
 * seconds, and for `random` also the median and the 99th percentile of a read in microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, READ_BYTES = 1 << 20, MOST_READERS = 64, HOT_PASSES = 4 };

enum access { COLD, HOT, DIRECT, MMAP, RANDOM, N_ACCESSES };

static const char *const access_names[N_ACCESSES] = {"cold", "hot", "direct", "mmap", "random"};

/* A reader and its part of the file. */
struct reader {
    pthread_t thread;
    int descriptor;
    uint8_t *buffer;
    const uint8_t *map; /* of the whole file */
    uint64_t begin, end;
    bool failed;
};

static const char *path;
static enum access access_kind;
static uint64_t file_bytes;
static struct reader readers[MOST_READERS];
static size_t n_readers;
static pthread_barrier_t start_line;

static uint64_t *pages; /* page numbers in random order */
static double *latencies;
static size_t n_latencies;

static volatile uint64_t sink; /* stores the sums, so that the compiler keeps them */

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-reader: %s: %s: %s\n", path, what, strerror(errno));
    exit(EX_IOERR);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- the page cache ---- */

/* Count the file's pages in the page cache. */
static size_t count_cached(int descriptor)
{
    const size_t n_pages = (size_t)((file_bytes + PAGE_BYTES - 1) / PAGE_BYTES);
    unsigned char *is_cached = malloc(n_pages);
    void *map = mmap(NULL, (size_t)file_bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    size_t n_cached = 0;

    if (!is_cached || map == MAP_FAILED || mincore(map, (size_t)file_bytes, is_cached) != 0)
        die("mincore");
    for (size_t i = 0; i < n_pages; i++)
        n_cached += is_cached[i] & 1;
    munmap(map, (size_t)file_bytes);
    free(is_cached);
    return n_cached;
}

static void make_cold(int descriptor)
{
    /* A page that is in use stays for a moment. */
    for (int tries = 0; tries < 100; tries++) {
        errno = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
        if (errno != 0)
            die("fadvise");
        if (count_cached(descriptor) == 0)
            return;
        usleep(1000);
    }
    errno = EBUSY;
    die("its pages stay in the page cache");
}

static void make_hot(int descriptor, void *buffer)
{
    /* Other processes may need the memory for a moment. */
    for (int tries = 0; tries < 100; tries++) {
        uint64_t offset = 0;
        ssize_t n;

        while ((n = pread(descriptor, buffer, READ_BYTES, (off_t)offset)) > 0)
            offset += (uint64_t)n;
        if (n < 0)
            die("read");
        if (count_cached(descriptor) * PAGE_BYTES >= file_bytes)
            return;
    }
    errno = ENOMEM;
    die("its pages do not stay in the page cache");
}

/* ---- the accesses; each returns true if it read everything ---- */

/* Read in units of `unit_bytes`; the last one may reach past the end of the file. */
static bool read_in_units(const struct reader *reader, uint64_t unit_bytes)
{
    uint64_t offset = reader->begin;

    while (offset < reader->end) {
        const uint64_t left = (reader->end - offset + unit_bytes - 1) / unit_bytes * unit_bytes;
        const ssize_t n = pread(reader->descriptor, reader->buffer,
                                left < READ_BYTES ? (size_t)left : READ_BYTES, (off_t)offset);

        if (n <= 0)
            return false;
        offset += (uint64_t)n;
    }
    return true;
}

static bool read_once(const struct reader *reader)
{
    return read_in_units(reader, 1);
}

/*
 * Several passes: one pass over hot pages is so short that another process may disturb all of it.
 */
static bool read_hot(const struct reader *reader)
{
    for (int i = 0; i < HOT_PASSES; i++) {
        if (!read_once(reader))
            return false;
    }
    return true;
}

/* O_DIRECT needs whole pages. */
static bool read_direct(const struct reader *reader)
{
    return read_in_units(reader, PAGE_BYTES);
}

static bool read_map(const struct reader *reader)
{
    uint64_t sum = 0, word;

    for (uint64_t i = reader->begin; i + sizeof word <= reader->end; i += sizeof word) {
        memcpy(&word, reader->map + i, sizeof word);
        sum += word;
    }
    sink = sum;
    return true;
}

/* Read one reader's part of the random order: the pages from `begin` to `end`. */
static bool read_random(const struct reader *reader)
{
    for (uint64_t i = reader->begin; i < reader->end; i++) {
        const double start = now();

        if (pread(reader->descriptor, reader->buffer, PAGE_BYTES, (off_t)(pages[i] * PAGE_BYTES)) <=
            0)
            return false;
        latencies[n_latencies++] = now() - start;
    }
    return true;
}

static bool (*const accesses[N_ACCESSES])(const struct reader *reader) = {
    read_once, read_hot, read_direct, read_map, read_random};

static void *run_reader(void *argument)
{
    struct reader *reader = argument;

    pthread_barrier_wait(&start_line);
    reader->failed = !accesses[access_kind](reader);
    return NULL;
}

/* ---- rounds ---- */

/* splitmix64 (Steele, Lea and Flood 2014). */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Shuffle the page numbers and allocate as many latencies. */
static void shuffle_pages(uint64_t n_pages)
{
    static uint64_t state;
    double *grown = reallocarray(latencies, n_latencies + n_pages, sizeof *latencies);

    if (!pages)
        pages = calloc(n_pages, sizeof *pages);
    if (!pages || !grown)
        die("shuffle");
    latencies = grown;
    for (uint64_t i = 0; i < n_pages; i++) {
        const uint64_t other = next_random(&state) % (i + 1);

        pages[i] = pages[other];
        pages[other] = i;
    }
}

/* Open the file for a reader whose part is `begin` to `end`. */
static void prepare(struct reader *reader, uint64_t begin, uint64_t end)
{
    *reader = (struct reader){.begin = begin, .end = end};
    reader->descriptor = open(path, O_RDONLY | O_CLOEXEC | (access_kind == DIRECT ? O_DIRECT : 0));
    reader->buffer = aligned_alloc(PAGE_BYTES, READ_BYTES);
    if (reader->descriptor < 0 || !reader->buffer)
        die("open");
    memset(reader->buffer, 0, READ_BYTES);
    /* Without it, the kernel may take two nearby reads for sequential access. */
    if (access_kind == RANDOM)
        posix_fadvise(reader->descriptor, 0, 0, POSIX_FADV_RANDOM);
    if (access_kind == MMAP) {
        reader->map = mmap(NULL, (size_t)file_bytes, PROT_READ, MAP_SHARED, reader->descriptor, 0);
        if (reader->map == MAP_FAILED)
            die("mmap");
    }
}

static void clean_up(struct reader *reader)
{
    if (reader->map)
        munmap((void *)(uintptr_t)reader->map, (size_t)file_bytes);
    free(reader->buffer);
    close(reader->descriptor);
}

/* Read the file once, but at most `most_bytes`. Add to the bytes and the seconds. */
static void run_round(uint64_t most_bytes, uint64_t *bytes, double *seconds)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    const uint64_t n_pages = (file_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    const uint64_t pages_each = (n_pages + n_readers - 1) / n_readers;
    uint64_t most_pages = (most_bytes + PAGE_BYTES - 1) / PAGE_BYTES;

    if (descriptor < 0)
        die("open");
    if (most_pages > n_pages)
        most_pages = n_pages;
    if (access_kind == RANDOM)
        shuffle_pages(n_pages);
    for (size_t i = 0; i < n_readers; i++) {
        uint64_t begin = i * pages_each * PAGE_BYTES, end = begin + pages_each * PAGE_BYTES;

        if (access_kind == RANDOM)
            prepare(&readers[i], 0, most_pages);
        else
            prepare(&readers[i], begin, end < file_bytes ? end : file_bytes);
    }
    make_cold(descriptor);
    if (access_kind == HOT)
        make_hot(descriptor, readers[0].buffer);

    pthread_barrier_init(&start_line, NULL, (unsigned)n_readers + 1);
    for (size_t i = 0; i < n_readers; i++) {
        errno = pthread_create(&readers[i].thread, NULL, run_reader, &readers[i]);
        if (errno != 0)
            die("pthread_create");
    }
    const double start = now();
    pthread_barrier_wait(&start_line);
    for (size_t i = 0; i < n_readers; i++)
        pthread_join(readers[i].thread, NULL);
    *seconds += now() - start;
    if (access_kind == RANDOM)
        *bytes += most_pages * PAGE_BYTES;
    else
        *bytes += access_kind == HOT ? HOT_PASSES * file_bytes : file_bytes;
    pthread_barrier_destroy(&start_line);

    for (size_t i = 0; i < n_readers; i++) {
        if (readers[i].failed)
            die("read");
        clean_up(&readers[i]);
    }
    /*
     * Drop the reader's pages, so that the next measurement allocates the same ones: the speed
     * depends on the physical page.
     */
    make_cold(descriptor);
    close(descriptor);
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

static double microseconds_at(double share)
{
    return latencies[(size_t)(share * (double)(n_latencies - 1))] * 1e6;
}

static bool parse_access(const char *name)
{
    for (access_kind = 0; access_kind < N_ACCESSES; access_kind++) {
        if (strcmp(access_names[access_kind], name) == 0)
            return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    uint64_t wanted_bytes, bytes = 0;
    double seconds = 0;
    struct stat status;

    if (argc != 5 || !parse_access(argv[1])) {
        fprintf(stderr, "usage: bench-reader cold|hot|direct|mmap|random READERS BYTES FILE\n");
        return EX_USAGE;
    }
    n_readers = strtoul(argv[2], NULL, 10);
    wanted_bytes = strtoull(argv[3], NULL, 10);
    path = argv[4];
    if (n_readers < 1 || n_readers > (access_kind == RANDOM ? 1 : MOST_READERS))
        return EX_USAGE;
    if (stat(path, &status) < 0)
        die("stat");
    file_bytes = (uint64_t)status.st_size;
    if (file_bytes < n_readers * PAGE_BYTES) {
        fprintf(stderr, "bench-reader: %s: too small\n", path);
        return EX_DATAERR;
    }
    do {
        run_round(wanted_bytes - bytes, &bytes, &seconds);
    } while (bytes < wanted_bytes);

    printf("%" PRIu64 " %.9f", bytes, seconds);
    if (access_kind == RANDOM) {
        qsort(latencies, n_latencies, sizeof *latencies, compare_doubles);
        printf(" %.2f %.2f", microseconds_at(0.5), microseconds_at(0.99));
    }
    putchar('\n');
    return EX_OK;
}
