/*
 * Makes allocations fail: a library for LD_PRELOAD.
 *
 *     FAIL_MALLOC_AT=N        the Nth allocation since main() was about to start, in each process
 *     FAIL_MALLOC_EVERY=1     and every Nth after it
 *     FAIL_MALLOC_LOG=FILE    its first 8 bytes, which must be there, count those that failed
 *
 * What the program starts with exec runs without it; a child of fork counts on from its parent.
 * glibc's strdup(), asprintf(), fopen() and the like call these functions as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own, which need no dlsym(), for that allocates. */
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_realloc(void *block, size_t size_bytes);

static _Atomic uint64_t n_allocations;
static uint64_t fail_at; /* 0: none */
static int fail_again;
static _Atomic uint64_t *n_failed; /* a mapping, which stays when all descriptors are closed */

__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_MALLOC_AT");
    const char *every = getenv("FAIL_MALLOC_EVERY");
    const char *log = getenv("FAIL_MALLOC_LOG");
    int descriptor;
    void *page;

    unsetenv("LD_PRELOAD");
    descriptor = log ? open(log, O_RDWR | O_CLOEXEC) : -1;
    page = mmap(NULL, sizeof *n_failed, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (page == MAP_FAILED)
        abort();
    close(descriptor);
    n_failed = page;
    fail_again = every && *every;
    fail_at = at ? strtoull(at, NULL, 10) : 0;
}

static int must_fail(void)
{
    uint64_t number;

    if (fail_at == 0)
        return 0;
    number = atomic_fetch_add(&n_allocations, 1) + 1;
    if (number != fail_at && (!fail_again || number % fail_at != 0))
        return 0;
    atomic_fetch_add(n_failed, 1);
    errno = ENOMEM;
    return 1;
}

void *malloc(size_t size_bytes)
{
    return must_fail() ? NULL : __libc_malloc(size_bytes);
}

void *calloc(size_t count, size_t size_bytes)
{
    return must_fail() ? NULL : __libc_calloc(count, size_bytes);
}

void *realloc(void *block, size_t size_bytes)
{
    return must_fail() ? NULL : __libc_realloc(block, size_bytes);
}

void *reallocarray(void *block, size_t count, size_t size_bytes)
{
    size_t all_bytes;

    if (__builtin_mul_overflow(count, size_bytes, &all_bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(block, all_bytes);
}
