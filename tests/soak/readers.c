/*
 * Many readers of a mounted tree at once: readers [OPTIONS] MOUNT COPY READERS READS
 *
 * Every reader picks files and places at random and compares what it gets, by pread(2) or through
 * mmap(2), with a copy of the tree on a disk. Prints the bytes compared; exits 1 at a difference.
 *
 *     -m          all through mmap(2)
 *     -k FILES    every reader keeps as many files open until all have ended
 *     -s SEED     another choice of files and places
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_READ ((size_t)256 << 10)

static const char *mounted, *copied;
static char **names; /* of the files, below both roots */
static size_t n_names;
static uint64_t n_reads;
static unsigned long n_readers, n_kept;
static uint64_t seed;
static bool is_all_mapped;
static pthread_barrier_t all_are_done;
static atomic_uint_fast64_t bytes_compared;
static atomic_bool is_different;

static int add_file(const char *path, const struct stat *status, int type, struct FTW *place)
{
    if (type != FTW_F || status->st_size == 0)
        return 0;
    names = reallocarray(names, n_names + 1, sizeof *names);
    if (!names)
        return -1;
    names[n_names] = strdup(path + strlen(copied) + 1);
    return names[n_names++] ? 0 : -1;
}

/* xorshift64 (Marsaglia 2003). */
static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static int open_below(const char *root, const char *name)
{
    char path[8192];
    int descriptor;

    snprintf(path, sizeof path, "%s/%s", root, name);
    descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        fprintf(stderr, "readers: %s: %s\n", path, strerror(errno));
    return descriptor;
}

static bool read_all(int descriptor, char *out, size_t length, off_t offset)
{
    while (length > 0) {
        const ssize_t n = pread(descriptor, out, length, offset);

        if (n <= 0)
            return false;
        out += n;
        offset += n;
        length -= (size_t)n;
    }
    return true;
}

static bool read_mapped(const char *name, int descriptor, char *out, size_t length, off_t offset,
                        off_t size)
{
    char *map = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, descriptor, 0);

    /* Before Linux 6.6, this file cannot be mapped, because the kernel does not cache it. */
    if (map == MAP_FAILED && errno == ENODEV && strcmp(name, "SHA256SUMS") == 0)
        return read_all(descriptor, out, length, offset);
    if (map == MAP_FAILED)
        return false;
    memcpy(out, map + offset, length);
    munmap(map, (size_t)size);
    return true;
}

/* Compare one place in one file. */
static bool compare(const char *name, uint64_t *random, char *expected, char *got)
{
    const int a = open_below(copied, name);
    const int b = open_below(mounted, name);
    struct stat status;
    bool is_same = false;

    if (a >= 0 && b >= 0 && fstat(b, &status) == 0) {
        const off_t offset = (off_t)(next(random) % (uint64_t)status.st_size);
        size_t length = 1 + (size_t)(next(random) % MAX_READ);

        if ((off_t)length > status.st_size - offset)
            length = (size_t)(status.st_size - offset);
        is_same = read_all(a, expected, length, offset) &&
                  (is_all_mapped || next(random) % 4 == 0
                       ? read_mapped(name, b, got, length, offset, status.st_size)
                       : read_all(b, got, length, offset)) &&
                  memcmp(expected, got, length) == 0;
        atomic_fetch_add(&bytes_compared, length);
        /* Otherwise the kernel's cache would hide the daemon from the next reader. */
        posix_fadvise(b, 0, 0, POSIX_FADV_DONTNEED);
        if (!is_same)
            fprintf(stderr, "readers: %s: %zu bytes at %jd differ\n", name, length,
                    (intmax_t)offset);
    }
    if (a >= 0)
        close(a);
    if (b >= 0)
        close(b);
    return is_same;
}

static void *run_reader(void *argument)
{
    uint64_t random = 0x9e3779b97f4a7c15 * ((uintptr_t)argument + 1 + seed * n_readers);
    char *expected = malloc(MAX_READ), *got = malloc(MAX_READ);
    int *kept = calloc(n_kept + 1, sizeof *kept);
    bool is_same = expected && got && kept;

    for (unsigned long i = 0; kept && i < n_kept; i++) {
        kept[i] = open_below(mounted, names[next(&random) % n_names]);
        is_same = is_same && kept[i] >= 0;
    }
    for (uint64_t i = 0; is_same && i < n_reads && !atomic_load(&is_different); i++)
        is_same = compare(names[next(&random) % n_names], &random, expected, got);
    if (!is_same)
        atomic_store(&is_different, true);
    pthread_barrier_wait(&all_are_done);
    for (unsigned long i = 0; kept && i < n_kept; i++) {
        if (kept[i] >= 0)
            close(kept[i]);
    }
    free(kept);
    free(expected);
    free(got);
    return NULL;
}

static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Return false if the command line is invalid. */
static bool parse(int argc, char **argv)
{
    int letter;

    while ((letter = getopt(argc, argv, "mk:s:")) != -1) {
        switch (letter) {
        case 'm':
            is_all_mapped = true;
            break;
        case 'k':
            n_kept = strtoul(optarg, NULL, 10);
            break;
        case 's':
            seed = strtoull(optarg, NULL, 10);
            break;
        default:
            return false;
        }
    }
    if (argc - optind != 4)
        return false;
    mounted = argv[optind];
    copied = argv[optind + 1];
    n_readers = strtoul(argv[optind + 2], NULL, 10);
    n_reads = strtoull(argv[optind + 3], NULL, 10);
    return n_readers > 0;
}

int main(int argc, char **argv)
{
    pthread_t *threads;

    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: readers [-m] [-k FILES] [-s SEED] MOUNT COPY READERS READS\n");
        return 64;
    }
    allow_many_files();
    threads = calloc(n_readers, sizeof *threads);
    if (!threads || pthread_barrier_init(&all_are_done, NULL, (unsigned)n_readers) != 0 ||
        nftw(copied, add_file, 16, FTW_PHYS) != 0 || n_names == 0) {
        fprintf(stderr, "readers: %s: no files to compare with\n", copied);
        return 1;
    }
    for (uintptr_t i = 0; i < n_readers; i++) {
        if (pthread_create(&threads[i], NULL, run_reader, (void *)i) != 0)
            return 1;
    }
    for (unsigned long i = 0; i < n_readers; i++)
        pthread_join(threads[i], NULL);
    printf("%lu readers compared %" PRIuFAST64 " bytes of %zu files: %s\n", n_readers,
           atomic_load(&bytes_compared), n_names,
           atomic_load(&is_different) ? "DIFFERENT" : "the same");
    return atomic_load(&is_different);
}
