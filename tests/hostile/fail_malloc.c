/*
 * Makes allocations fail: a library for LD_PRELOAD.
 *
 *     FAIL_MALLOC_AT=N        fail the Nth allocation of each process, counted from just before
 * main() FAIL_MALLOC_EVERY=1     fail every Nth allocation after it too FAIL_MALLOC_LOG=FILE count
 * failures in the first 8 bytes of FILE, which must exist
 *
 * Programs started with exec run without the library. A forked child continues the count of its
 * parent. glibc's strdup(), asprintf(), fopen() and others use these functions too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* glibc's own functions. dlsym() cannot be used to find them, because it allocates. */
extern void *__libc_malloc(size_t size_bytes);
extern void *__libc_calloc(size_t count, size_t size_bytes);
extern void *__libc_realloc(void *block, size_t size_bytes);
extern void *__libc_memalign(size_t alignment, size_t size_bytes);

static _Atomic uint64_t n_allocations;
static uint64_t fail_at; /* 0: never */
static int fail_again;
static _Atomic uint64_t *n_failed; /* a mapping, because the program may close every descriptor */

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

void *aligned_alloc(size_t alignment, size_t size_bytes)
{
    return must_fail() ? NULL : __libc_memalign(alignment, size_bytes);
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
