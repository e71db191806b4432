#include "fs/mount/prefetch.h"

#include "fs/mount/log.h"
#include "gguf/support/thread_start.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

/* Bytes read at a time: stop() waits that long. */
#define CHUNK_BYTES (8u << 20)

/* Return the bytes available without swapping, or UINT64_MAX if that is unknown. */
static uint64_t available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t kib = UINT64_MAX / 1024;
    char line[128];

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    }
    if (file)
        fclose(file);
    return kib < UINT64_MAX / 1024 ? kib * 1024 : UINT64_MAX;
}

bool fs_prefetch_fits(const struct gguf_files *files)
{
    const uint64_t room_bytes = available_bytes();
    uint64_t size_bytes = 0;

    for (uint32_t i = 0; i < files->count; i++)
        size_bytes += files->list[i].file.source.size_bytes;
    if (size_bytes <= room_bytes)
        return true;
    fs_complain(files->list[files->named].file.source.path, NULL,
                "not read into memory: it has %.1f MB, and only %.1f MB are available",
                (double)size_bytes / 1e6, (double)room_bytes / 1e6);
    return false;
}

/* Read a file until its end or stop(). Returns 0 or a negative errno. */
static int read_file(const struct fs_prefetch *prefetch, const struct gguf_source *source)
{
    int result = 0;

    for (uint64_t at = 0; at < source->size_bytes && result == 0; at += CHUNK_BYTES) {
        const uint64_t left = source->size_bytes - at;

        if (prefetch->should_stop)
            break;
        result = gguf_source_prefetch(source, at, left < CHUNK_BYTES ? left : CHUNK_BYTES);
    }
    return result;
}

static void *run(void *argument)
{
    const struct fs_prefetch *prefetch = argument;

    for (uint32_t i = 0; i < prefetch->model->n_files; i++) {
        const struct gguf_source *source = &prefetch->model->files[i].source;
        const int result = read_file(prefetch, source);

        if (result < 0)
            fs_log(LOG_ERR, "%s: not read into memory: %s", source->path, strerror(-result));
    }
    return NULL;
}

void fs_prefetch_start(struct fs_prefetch *prefetch, const struct gguf_model *model)
{
    int result;

    prefetch->model = model;
    result = gguf_thread_start(&prefetch->thread, run, prefetch);
    prefetch->is_started = result == 0;
    if (result < 0)
        fs_log(LOG_ERR, "the model is not read into memory: %s", strerror(-result));
}

void fs_prefetch_stop(struct fs_prefetch *prefetch)
{
    if (!prefetch->is_started)
        return;
    prefetch->should_stop = true;
    pthread_join(prefetch->thread, NULL);
    prefetch->is_started = false;
}
