#include "gguf/file_changes.h"

#include "gguf/support/times.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct gguf_changes {
    pthread_mutex_t lock; /* of `seen` and `result` */
    struct gguf_file_status seen;
    int result; /* 0 or -ESTALE, for a source with the times in `seen` */
    atomic_uint generation;
};

int gguf_changes_begin(const struct gguf_source *source, struct gguf_changes **changes)
{
    *changes = calloc(1, sizeof **changes);
    if (!*changes)
        return -ENOMEM;
    pthread_mutex_init(&(*changes)->lock, NULL);
    return source->kind->get_status(source, &(*changes)->seen);
}

void gguf_changes_free(struct gguf_changes *changes)
{
    if (changes)
        pthread_mutex_destroy(&changes->lock);
    free(changes);
}

/* Runs under the lock, so that one thread compares the header and the others wait for it. */
static int check_times(struct gguf_changes *changes, const struct gguf_source *source,
                       const struct gguf_header *header, const struct gguf_file_status *now)
{
    int result;

    if (now->size_bytes != source->size_bytes)
        return -ESTALE;
    if (gguf_is_same_time(now->modified, changes->seen.modified) &&
        gguf_is_same_time(now->status_changed, changes->seen.status_changed))
        return changes->result;
    result = gguf_header_compare(header, source);
    if (result == -EIO)
        return result; /* the next check may succeed */
    changes->seen = *now;
    changes->result = result;
    if (result == 0)
        atomic_fetch_add(&changes->generation, 1);
    return result;
}

int gguf_changes_check(struct gguf_changes *changes, const struct gguf_source *source,
                       const struct gguf_header *header, uint64_t end_offset)
{
    struct gguf_file_status now;
    int result;

    if (source->kind->get_status(source, &now) < 0 || now.size_bytes < end_offset)
        return -EIO;
    /* If the file only became shorter, the rest is still good. */
    if (source->is_growing || now.size_bytes < source->size_bytes)
        return 0;
    pthread_mutex_lock(&changes->lock);
    result = check_times(changes, source, header, &now);
    pthread_mutex_unlock(&changes->lock);
    return result;
}

unsigned gguf_changes_generation(const struct gguf_changes *changes)
{
    return atomic_load(&changes->generation);
}

struct timespec gguf_changes_modified(struct gguf_changes *changes)
{
    struct timespec modified;

    pthread_mutex_lock(&changes->lock);
    modified = changes->seen.modified;
    pthread_mutex_unlock(&changes->lock);
    return modified;
}
