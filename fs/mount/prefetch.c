#include "fs/mount/prefetch.h"

#include "fs/mount/available_memory.h"
#include "fs/mount/complain.h"
#include "fs/mount/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* Bytes read at a time: stop() waits that long. */
#define CHUNK_BYTES (8u << 20)
/* The kernel's error numbers are smaller. */
#define MAX_ERRNO 4096

static uint64_t total_bytes(const struct gguf_files *files)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < files->count; i++)
        sum += files->list[i].file.size_bytes;
    return sum;
}

static const char *named_path(const struct fs_prefetch *prefetch)
{
    return prefetch->progress.path;
}

void fs_prefetch_prepare(struct fs_prefetch *prefetch, const struct gguf_files *files)
{
    const uint64_t size_bytes = total_bytes(files), room_bytes = fs_available_memory();
    void *state;

    *prefetch = (struct fs_prefetch){.files = files};
    gguf_progress_start(&prefetch->progress, files->list[files->named].file.path);
    if (size_bytes > room_bytes) {
        fs_complain(named_path(prefetch), NULL,
                    "not read into memory: it has %.1f MB, and only %.1f MB are available",
                    (double)size_bytes / 1e6, (double)room_bytes / 1e6);
        return;
    }
    state = mmap(NULL, sizeof *prefetch->state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (state == MAP_FAILED)
        fs_complain(named_path(prefetch), NULL, "not read into memory: %s", strerror(errno));
    else
        prefetch->state = state;
}

void fs_prefetch_end(struct fs_prefetch *prefetch)
{
    if (prefetch->state)
        munmap(prefetch->state, sizeof *prefetch->state);
    prefetch->state = NULL;
}

void fs_prefetch_lock(struct fs_prefetch *prefetch)
{
    const struct gguf_files *files = prefetch->files;
    struct rlimit limit = {0};

    if (!prefetch->state)
        return;
    for (uint32_t i = 0; i < files->count; i++) {
        const struct gguf_source *file = &files->list[i].file;
        const int result = file->kind ? gguf_source_lock(file) : 0;

        if (result == 0)
            continue;
        if (result == -ENOMEM || result == -EPERM) {
            getrlimit(RLIMIT_MEMLOCK, &limit);
            fs_complain(file->path, NULL,
                        "not locked in memory: it has %.1f MB, and the limit of this user is %.1f "
                        "MB (ulimit -l)",
                        (double)file->size_bytes / 1e6, (double)limit.rlim_cur / 1e6);
        } else {
            fs_complain(file->path, NULL, "not locked in memory: %s", strerror(-result));
        }
    }
}

/* Print why prefetching ended early at `done_bytes`, if it did. */
static void complain(const struct fs_prefetch *prefetch, uint64_t done_bytes, int result)
{
    const struct gguf_files *files = prefetch->files;
    const char *path = named_path(prefetch);
    const int error = result > -MAX_ERRNO ? -result : EIO;
    uint32_t i = 0;

    if (result >= 0 || result == -ECANCELED)
        return;
    while (i < files->count && done_bytes >= files->list[i].file.size_bytes)
        done_bytes -= files->list[i++].file.size_bytes;
    if (i < files->count && files->list[i].file.path)
        fs_complain(files->list[i].file.path, NULL, "byte %" PRIu64 ": not read into memory: %s",
                    done_bytes, strerror(error));
    else
        fs_complain(path, NULL, "not read into memory: %s", strerror(error));
}

static void *run(void *argument)
{
    struct fs_prefetch *prefetch = argument;
    const struct gguf_model *model = prefetch->model;
    struct fs_prefetch_state *state = prefetch->state;
    const char *path = named_path(prefetch);
    uint64_t all_bytes = 0, done_bytes = 0;
    int result = 0;

    for (uint32_t i = 0; i < model->n_files; i++)
        all_bytes += model->files[i].size_bytes;
    for (uint32_t i = 0; i < model->n_files && result == 0; i++) {
        const struct gguf_source *file = &model->files[i];

        for (uint64_t at = 0; at < file->size_bytes && result == 0; at += CHUNK_BYTES) {
            const uint64_t left = file->size_bytes - at;
            const size_t n_bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;

            result = state->should_stop ? -ECANCELED : gguf_source_prefetch(file, at, n_bytes);
            if (result == 0)
                done_bytes += n_bytes;
            else
                path = file->path;
            state->done_bytes = done_bytes;
            gguf_progress_draw(&prefetch->progress, done_bytes, all_bytes);
        }
    }
    gguf_progress_erase(&prefetch->progress);
    state->result = result;
    state->is_done = true;
    if (result < 0 && result != -ECANCELED)
        fs_log(&(struct fs_log_about){.event = FS_LOG_MISCELLANEOUS, .error = -result},
               "%s: not read into memory: %s", path, strerror(-result));
    return NULL;
}

void fs_prefetch_start(struct fs_prefetch *prefetch, const struct gguf_model *model)
{
    if (!prefetch->state)
        return;
    prefetch->model = model;
    prefetch->is_started = pthread_create(&prefetch->thread, NULL, run, prefetch) == 0;
    if (!prefetch->is_started) {
        prefetch->state->result = -EAGAIN;
        prefetch->state->is_done = true;
    }
}

void fs_prefetch_stop(struct fs_prefetch *prefetch)
{
    if (!prefetch->is_started)
        return;
    prefetch->state->should_stop = true;
    pthread_join(prefetch->thread, NULL);
    prefetch->is_started = false;
}

void fs_prefetch_watch(struct fs_prefetch *prefetch)
{
    const struct timespec pause = {.tv_nsec = 50000000};
    struct fs_prefetch_state *state = prefetch->state;
    uint64_t all_bytes;

    if (!state || !prefetch->progress.is_shown)
        return;
    all_bytes = total_bytes(prefetch->files);
    while (!state->is_done && waitpid(-1, NULL, WNOHANG) == 0) {
        const uint64_t done_bytes = state->done_bytes;

        gguf_progress_draw(&prefetch->progress, done_bytes < all_bytes ? done_bytes : all_bytes,
                           all_bytes);
        nanosleep(&pause, NULL);
    }
    gguf_progress_erase(&prefetch->progress);
    if (state->is_done)
        complain(prefetch, state->done_bytes, state->result);
}
