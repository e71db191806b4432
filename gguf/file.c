#include "gguf/file.h"

#include "gguf/support/model_paths.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Detects changes: the file's status is compared with that at the opening. */
struct gguf_changes {
    pthread_mutex_t lock; /* of `seen` and `result` */
    struct gguf_file_status seen;
    int result; /* 0 or -ESTALE, for a source with the times in `seen` */
    atomic_uint generation;
};

int gguf_file_open(const struct gguf_source_kind *kind, const void *state, uint64_t size_bytes,
                   const char *path, struct gguf_file *file, struct gguf_report *report)
{
    struct gguf_source *source = &file->source;
    int result = 0;

    *file = (struct gguf_file){.source = {.kind = kind,
                                          .state = (void *)(uintptr_t)state,
                                          .is_growing = kind->has,
                                          .size_bytes = size_bytes,
                                          .descriptor = -1},
                               .header = {.limit_bytes = GGUF_MAX_HEADER_BYTES,
                                          .limit_hole_bytes = GGUF_MAX_HEADER_HOLE_BYTES}};
    if (kind->open && (result = kind->open(source, path, report)) < 0) {
        gguf_file_close(file);
        return result;
    }
    source->end_offset = source->is_growing ? UINT64_MAX : source->size_bytes;
    source->path = gguf_absolute_path(path);
    if (!source->path)
        result = -errno;
    file->changes = calloc(1, sizeof *file->changes);
    if (file->changes)
        pthread_mutex_init(&file->changes->lock, NULL);
    else
        result = -ENOMEM;
    if (result == 0)
        result = kind->get_status(source, &file->changes->seen);
    if (result < 0) {
        gguf_system_error(report, result, GGUF_NO_PLACE);
        gguf_file_close(file);
    }
    return result;
}

void gguf_file_close(struct gguf_file *file)
{
    if (file->source.kind)
        file->source.kind->close(&file->source);
    free(file->source.path);
    gguf_header_free(&file->header);
    if (file->changes)
        pthread_mutex_destroy(&file->changes->lock);
    free(file->changes);
    *file = (struct gguf_file){0};
}

/* Runs under the lock, so that one thread compares the header and the others wait for it. */
static int check_times(const struct gguf_file *file, const struct gguf_file_status *now)
{
    struct gguf_changes *changes = file->changes;
    int result;

    if (now->size_bytes != file->source.size_bytes)
        return -ESTALE;
    if (gguf_is_same_time(now->modified, changes->seen.modified) &&
        gguf_is_same_time(now->status_changed, changes->seen.status_changed))
        return changes->result;
    result = gguf_header_compare(&file->header, &file->source);
    if (result == -EIO)
        return result; /* the next check may succeed */
    changes->seen = *now;
    changes->result = result;
    if (result == 0)
        atomic_fetch_add(&changes->generation, 1);
    return result;
}

int gguf_file_check(const struct gguf_file *file, uint64_t end_offset)
{
    const struct gguf_source *source = &file->source;
    struct gguf_file_status now;
    int result;

    if (source->kind->get_status(source, &now) < 0 || now.size_bytes < end_offset)
        return -EIO;
    /* If the file only became shorter, the rest is still good. */
    if (source->is_growing || now.size_bytes < source->size_bytes)
        return 0;
    pthread_mutex_lock(&file->changes->lock);
    result = check_times(file, &now);
    pthread_mutex_unlock(&file->changes->lock);
    return result;
}

int gguf_file_read(const struct gguf_file *file, uint64_t offset, size_t n_bytes, void *out)
{
    const int result = gguf_source_read(&file->source, offset, n_bytes, out);

    return result < 0 ? result : gguf_file_check(file, offset + n_bytes);
}

int gguf_file_get_mapped(const struct gguf_file *file, struct gguf_file_status *status)
{
    const struct gguf_source *source = &file->source;

    if (!source->mapping)
        return -ENODATA;
    if (source->kind->get_status(source, status) < 0)
        return -EIO;
    return gguf_file_check(file, source->size_bytes);
}

unsigned gguf_file_generation(const struct gguf_file *file)
{
    return atomic_load(&file->changes->generation);
}

struct timespec gguf_file_modified(const struct gguf_file *file)
{
    struct timespec modified;

    pthread_mutex_lock(&file->changes->lock);
    modified = file->changes->seen.modified;
    pthread_mutex_unlock(&file->changes->lock);
    return modified;
}
