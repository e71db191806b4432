#include "fs/mount/prefetch.h"

#include "fs/mount/complain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

/* What is asked for at a time: stop() waits that long. */
#define CHUNK_BYTES (8u << 20)

struct fs_prefetch_state {
    _Atomic uint64_t done_bytes;
    _Atomic int result; /* a negative errno if it ended early */
    atomic_bool is_done;
    atomic_bool should_stop;
};

static uint64_t total_bytes(const struct gguf_model *model)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < model->n_files; i++)
        sum += model->files[i].size_bytes;
    return sum;
}

static const char *named_path(const struct gguf_model *model)
{
    return model->files[model->named_file].path;
}

/* The number behind the label in a file of lines; UINT64_MAX if there is none. */
static uint64_t read_number(const char *path, const char *label)
{
    FILE *file = fopen(path, "re");
    uint64_t number = UINT64_MAX;
    char line[256];

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, label, strlen(label)) == 0 &&
            sscanf(line + strlen(label), "%" SCNu64, &number) == 1)
            break;
    }
    if (file)
        fclose(file);
    return number;
}

/*
 * What the system could give without swapping, by its own guess, or less if this is a container;
 * UINT64_MAX if it does not say.
 */
static uint64_t available_bytes(void)
{
    const uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");
    const uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    const uint64_t available = kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;

    return limit < available ? limit : available;
}

void fs_prefetch_prepare(struct fs_prefetch *prefetch, const struct gguf_model *model)
{
    const uint64_t size_bytes = total_bytes(model), room_bytes = available_bytes();
    void *state;

    *prefetch = (struct fs_prefetch){.model = model};
    gguf_progress_start(&prefetch->progress, named_path(model));
    if (size_bytes > room_bytes) {
        fs_complain(named_path(model), NULL,
                    "not brought into memory: of its %.1f GB only %.1f GB have room",
                    (double)size_bytes / 1e9, (double)room_bytes / 1e9);
        return;
    }
    state = mmap(NULL, sizeof *prefetch->state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    if (state == MAP_FAILED)
        fs_complain(named_path(model), NULL, "not brought into memory: %s", strerror(errno));
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
    const struct gguf_model *model = prefetch->model;
    struct rlimit limit = {0};

    if (!prefetch->state)
        return;
    for (uint32_t i = 0; i < model->n_files; i++) {
        const struct gguf_source *file = &model->files[i];

        const int result = gguf_source_lock(file);

        if (result == 0)
            continue;
        if (result == -ENOMEM || result == -EPERM) {
            getrlimit(RLIMIT_MEMLOCK, &limit);
            fs_complain(file->path, NULL,
                        "not locked in memory: it has %.1f GB, and the limit of this user is %.1f "
                        "GB (ulimit -l)",
                        (double)file->size_bytes / 1e9, (double)limit.rlim_cur / 1e9);
        } else {
            fs_complain(file->path, NULL, "not locked in memory: %s", strerror(-result));
        }
    }
}

static void complain(const struct fs_prefetch *prefetch)
{
    const struct fs_prefetch_state *state = prefetch->state;
    const struct gguf_source *file = prefetch->model->files;
    uint64_t offset = state->done_bytes;

    if (state->result == 0 || state->result == -ECANCELED)
        return;
    /* Not beyond the last file: there is more to do. */
    while (offset >= file->size_bytes)
        offset -= file++->size_bytes;
    fs_complain(file->path, NULL, "byte %" PRIu64 ": not brought into memory: %s", offset,
                strerror(-state->result));
}

static void *run(void *argument)
{
    struct fs_prefetch *prefetch = argument;
    const struct gguf_model *model = prefetch->model;
    const uint64_t all_bytes = total_bytes(model);
    struct fs_prefetch_state *state = prefetch->state;
    int result = 0;

    for (uint32_t i = 0; i < model->n_files; i++) {
        const struct gguf_source *file = &model->files[i];

        for (uint64_t at = 0; at < file->size_bytes && result == 0; at += CHUNK_BYTES) {
            const uint64_t left = file->size_bytes - at;
            const size_t n_bytes = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;

            result = state->should_stop ? -ECANCELED : gguf_source_prefetch(file, at, n_bytes);
            if (result == 0)
                state->done_bytes += n_bytes;
            gguf_progress_draw(&prefetch->progress, state->done_bytes, all_bytes);
        }
    }
    gguf_progress_erase(&prefetch->progress);
    state->result = result;
    state->is_done = true;
    complain(prefetch); /* which in the background nobody hears; there is fs_prefetch_watch() */
    return NULL;
}

void fs_prefetch_start(struct fs_prefetch *prefetch)
{
    if (!prefetch->state)
        return;
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
    const struct fs_prefetch_state *state = prefetch->state;

    if (!state || !prefetch->progress.is_shown)
        return;
    while (!state->is_done && waitpid(-1, NULL, WNOHANG) == 0) {
        gguf_progress_draw(&prefetch->progress, state->done_bytes, total_bytes(prefetch->model));
        nanosleep(&pause, NULL);
    }
    gguf_progress_erase(&prefetch->progress);
    if (state->is_done)
        complain(prefetch);
}
