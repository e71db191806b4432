#include "contrib/runner/cli/read_ahead.h"

#include "gguf/support/thread_start.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes read at once, and bytes requested ahead. */
#define CHUNK_BYTES ((uint64_t)8 << 20)

/* Return the bytes available without swapping; 0 if unknown. */
static uint64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t kib = 0;
    char line[128];

    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib * 1024;
}

bool run_read_ahead_fits(const struct run_weights *weights)
{
    return run_weights_mapped_bytes(weights) <= available_bytes();
}

static void request(const uint8_t *data, uint64_t n_bytes, uint64_t page_bytes)
{
    const uint64_t before = (uintptr_t)data % page_bytes;

    if (n_bytes > 0)
        madvise((void *)(uintptr_t)(data - before), before + n_bytes, MADV_WILLNEED);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Touch every page, after requesting the pages of the next chunk. */
static void read_bytes(const struct run_read_ahead *ahead, const uint8_t *data, uint64_t n_bytes)
{
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);

    request(data, smaller(n_bytes, CHUNK_BYTES), page_bytes);
    for (uint64_t at = 0; at < n_bytes && !atomic_load(&ahead->should_stop); at += CHUNK_BYTES) {
        const uint64_t end = smaller(n_bytes, at + CHUNK_BYTES);

        request(data + end, smaller(n_bytes - end, CHUNK_BYTES), page_bytes);
        for (uint64_t i = at; i < end; i += page_bytes)
            (void)*(const volatile uint8_t *)(data + i);
    }
}

/* The layers come first; embeddings and output are needed after them, or hardly. */
static void *read_all(void *context)
{
    const struct run_read_ahead *ahead = context;

    for (int is_rest = 0; is_rest < 2; is_rest++) {
        const uint8_t *data;
        uint64_t n_bytes;

        for (size_t i = 0; run_weights_mapping(ahead->weights, i, &data, &n_bytes); i++) {
            const char *name = run_weights_name_at(ahead->weights, data);
            const bool is_layer = name && strncmp(name, "blk.", 4) == 0;

            if (is_layer != is_rest)
                read_bytes(ahead, data, n_bytes);
        }
    }
    return NULL;
}

void run_read_ahead_start(struct run_read_ahead *ahead, const struct run_weights *weights)
{
    ahead->weights = weights;
    ahead->is_started = gguf_thread_start(&ahead->thread, read_all, ahead) == 0;
}

void run_read_ahead_finish(struct run_read_ahead *ahead)
{
    if (ahead->is_started)
        pthread_join(ahead->thread, NULL);
    ahead->is_started = false;
}

void run_read_ahead_end(struct run_read_ahead *ahead)
{
    atomic_store(&ahead->should_stop, true);
    run_read_ahead_finish(ahead);
}
