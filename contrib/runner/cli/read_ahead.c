#include "contrib/runner/cli/read_ahead.h"

#include "contrib/runner/cli/task_files.h"
#include "gguf/support/thread_start.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The size of a huge page. */
#define STEP_BYTES ((uintptr_t)2 << 20)

#if !defined(MADV_POPULATE_READ)
#define MADV_POPULATE_READ 22 /* since Linux 5.14 */
#endif

bool run_read_ahead_fits(const struct run_weights *weights)
{
    const int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    const uint64_t available_bytes = fd < 0 ? 0 : run_proc_bytes(fd, "\nMemAvailable:");

    if (fd >= 0)
        close(fd);
    return run_weights_mapped_bytes(weights) <= available_bytes;
}

/*
 * Map a thread's share of the bytes, in steps that end where huge pages do, so that the kernel
 * reads whole ones: map_file() in tree/model_files.c asks for them. What fails will fail in the
 * computation.
 */
static void read_bytes(const struct run_read_ahead *ahead, unsigned thread, const uint8_t *data,
                       uint64_t n_bytes)
{
    const uintptr_t page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t end = (uintptr_t)data + n_bytes;
    uintptr_t at = (uintptr_t)data / page_bytes * page_bytes;

    while (at < end && !atomic_load(&ahead->should_stop)) {
        const uintptr_t edge = (at / STEP_BYTES + 1) * STEP_BYTES;
        const uintptr_t next = edge < end ? edge : end;

        if (at / STEP_BYTES % RUN_READERS == thread)
            madvise((void *)at, next - at, MADV_POPULATE_READ);
        at = next;
    }
}

/* The layers come first; embeddings and output are needed after them, or hardly. */
static void *read_all(void *context)
{
    struct run_read_ahead *ahead = context;
    const unsigned thread = atomic_fetch_add(&ahead->n_begun, 1);

    for (int is_rest = 0; is_rest < 2; is_rest++) {
        const struct run_tensor *tensor;

        for (size_t i = 0; (tensor = run_weights_mapping(ahead->weights, i)); i++)
            if ((strncmp(tensor->name, "blk.", 4) == 0) != is_rest)
                read_bytes(ahead, thread, tensor->data, run_tensor_bytes(tensor));
    }
    return NULL;
}

void run_read_ahead_start(struct run_read_ahead *ahead, const struct run_weights *weights)
{
    ahead->weights = weights;
    while (ahead->n_threads < RUN_READERS &&
           gguf_thread_start(&ahead->threads[ahead->n_threads], read_all, ahead) == 0)
        ahead->n_threads++;
}

void run_read_ahead_finish(struct run_read_ahead *ahead)
{
    while (ahead->n_threads > 0)
        pthread_join(ahead->threads[--ahead->n_threads], NULL);
    atomic_store(&ahead->n_begun, 0);
}

void run_read_ahead_end(struct run_read_ahead *ahead)
{
    atomic_store(&ahead->should_stop, true);
    run_read_ahead_finish(ahead);
}
