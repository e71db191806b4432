#include "gguf/source.h"

#include "gguf/faults.h"
#include "gguf/file_sources.h"
#include "gguf/support/absolute_path.h"
#include "gguf/support/times.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older C libraries do not define it */
#endif

/* The first one that fits is used; the last one fits every path. */
static const struct gguf_source_kind *const kinds[] = {&gguf_whole_file};

static const struct gguf_source_kind *choose_kind(const char *path)
{
    size_t i = 0;

    while (kinds[i]->fits && !kinds[i]->fits(path)) {
        i++;
        assert(i < sizeof kinds / sizeof(kinds[0]));
    }
    return kinds[i];
}

/* The result of the last gguf_source_check(). */
struct gguf_changes {
    pthread_mutex_t lock; /* of `seen` and `result` */
    struct gguf_file_status seen;
    int result; /* 0 or -ESTALE, for a source with the times in `seen` */
    atomic_uint generation;
};

static int begin(struct gguf_source *source, const char *path)
{
    source->path = gguf_absolute_path(path);
    if (!source->path)
        return -errno;
    source->changes = calloc(1, sizeof *source->changes);
    if (!source->changes)
        return -ENOMEM;
    pthread_mutex_init(&source->changes->lock, NULL);
    return source->kind->get_status(source, &source->changes->seen);
}

int gguf_source_open(const char *path, bool is_growing, struct gguf_source *source,
                     struct gguf_report *report)
{
    return gguf_source_open_as(choose_kind(path), NULL, path, is_growing, source, report);
}

int gguf_source_open_as(const struct gguf_source_kind *kind, void *state, const char *path,
                        bool is_growing, struct gguf_source *source, struct gguf_report *report)
{
    int result;

    *source = (struct gguf_source){
        .kind = kind, .state = state, .is_growing = is_growing, .descriptor = -1};
    source->header.limit_bytes = GGUF_MAX_HEADER_BYTES;
    result = source->kind->open(source, path, report);
    source->end_offset = is_growing ? UINT64_MAX : source->size_bytes;
    if (result == 0) {
        result = begin(source, path);
        if (result < 0)
            gguf_system_error(report, result, GGUF_NO_PLACE);
    }
    if (result < 0)
        gguf_source_close(source);
    return result;
}

void gguf_source_close(struct gguf_source *source)
{
    if (!source->kind)
        return;
    source->kind->close(source);
    gguf_header_free(&source->header);
    if (source->changes)
        pthread_mutex_destroy(&source->changes->lock);
    free(source->changes);
    free(source->path);
    *source = (struct gguf_source){0};
}

bool gguf_source_has(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes)
{
    const bool is_growing = source->is_growing && source->kind->has;
    const uint64_t end = is_growing ? source->end_offset : gguf_source_end(source);

    return n_bytes <= end && offset <= end - n_bytes &&
           (!is_growing || source->kind->has(source, offset, n_bytes));
}

/* ---- changes ---- */

/* Runs under the lock, so that one thread compares the header and the others wait for it. */
static int check_times(const struct gguf_source *source, const struct gguf_file_status *now)
{
    struct gguf_changes *changes = source->changes;
    int result;

    if (now->size_bytes != source->size_bytes)
        return -ESTALE;
    if (gguf_is_same_time(now->modified, changes->seen.modified) &&
        gguf_is_same_time(now->status_changed, changes->seen.status_changed))
        return changes->result;
    result = gguf_header_compare(source);
    if (result == -EIO)
        return result; /* the next check may succeed */
    changes->seen = *now;
    changes->result = result;
    if (result == 0)
        atomic_fetch_add(&changes->generation, 1);
    return result;
}

int gguf_source_check(const struct gguf_source *source, uint64_t end_offset)
{
    struct gguf_file_status now;
    int result;

    if (source->kind->get_status(source, &now) < 0 || now.size_bytes < end_offset)
        return -EIO;
    /* If the file only became shorter, the rest is still good. */
    if (source->is_growing || now.size_bytes < source->size_bytes)
        return 0;
    pthread_mutex_lock(&source->changes->lock);
    result = check_times(source, &now);
    pthread_mutex_unlock(&source->changes->lock);
    return result;
}

int gguf_source_get_file(const struct gguf_source *source, struct gguf_file_status *status)
{
    int result;

    if (!source->mapping)
        return -ENODATA;
    result = source->kind->get_status(source, status);
    return result < 0 ? -EIO : gguf_source_check(source, source->size_bytes);
}

unsigned gguf_source_generation(const struct gguf_source *source)
{
    return atomic_load(&source->changes->generation);
}

struct timespec gguf_source_modified(const struct gguf_source *source)
{
    struct timespec modified;

    pthread_mutex_lock(&source->changes->lock);
    modified = source->changes->seen.modified;
    pthread_mutex_unlock(&source->changes->lock);
    return modified;
}

/* ---- reading ---- */

int gguf_source_read_unchecked(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                               void *out)
{
    /* Check for holes before reading: a hole may become data meanwhile, but data never a hole. */
    if (source->is_growing && !gguf_source_has(source, offset, n_bytes))
        return -EIO;
    return source->kind->read(source, offset, n_bytes, out);
}

int gguf_source_read(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    const int result = gguf_source_read_unchecked(source, offset, n_bytes, out);

    return result < 0 ? result : gguf_source_check(source, offset + n_bytes);
}

struct loan {
    const uint8_t *bytes;
    size_t n_bytes;
    gguf_bytes_user *use;
    void *argument;
};

static void use_mapping(void *argument)
{
    const struct loan *loan = argument;

    loan->use(loan->argument, 0, loan->bytes, loan->n_bytes);
}

static int lend_copies(const struct gguf_source *source, uint64_t offset, size_t unit_bytes,
                       const struct loan *loan)
{
    const size_t room_bytes = GGUF_LENT_BYTES / unit_bytes * unit_bytes;
    uint8_t bytes[GGUF_LENT_BYTES];

    for (size_t at = 0; at < loan->n_bytes;) {
        const size_t left = loan->n_bytes - at, n = left < room_bytes ? left : room_bytes;
        const int result = gguf_source_read_unchecked(source, offset + at, n, bytes);

        if (result < 0)
            return result;
        loan->use(loan->argument, at, bytes, n);
        at += n;
    }
    return 0;
}

int gguf_source_lend_unchecked(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                               size_t unit_bytes, gguf_bytes_user *use, void *argument)
{
    struct loan loan = {.n_bytes = n_bytes, .use = use, .argument = argument};
    int result = -EIO;

    if (source->mapping && n_bytes <= source->size_bytes &&
        offset <= source->size_bytes - n_bytes) {
        loan.bytes = source->mapping + offset;
        result = gguf_faults_guard(use_mapping, &loan);
    }
    /* A page that cannot be mapped, such as a hole in a full tmpfs, may still be read. */
    if (result < 0)
        result = lend_copies(source, offset, unit_bytes, &loan);
    return result;
}

int gguf_source_lend(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                     size_t unit_bytes, gguf_bytes_user *use, void *argument)
{
    const int result =
        gguf_source_lend_unchecked(source, offset, n_bytes, unit_bytes, use, argument);

    return result < 0 ? result : gguf_source_check(source, offset + n_bytes);
}

struct gguf_pieces gguf_source_find_pieces(const struct gguf_source *source, uint64_t offset)
{
    if (source->kind->find_pieces)
        return source->kind->find_pieces(source, offset);
    return (struct gguf_pieces){.path = source->path, .offset = offset, .n_files = 1};
}

/* ---- memory ---- */

int gguf_source_prefetch(const struct gguf_source *source, uint64_t offset, size_t n_bytes)
{
    uint8_t bytes[GGUF_LENT_BYTES];
    int result = 0;

    if (source->mapping) {
        /* This reads pages that are not in memory; EFAULT means that one cannot be read. */
        if (madvise((void *)(uintptr_t)(source->mapping + offset), n_bytes, MADV_POPULATE_READ) ==
            0)
            return 0;
        if (errno != EINVAL) /* Linux before 5.14 does not know it */
            return errno == EFAULT ? -EIO : -errno;
    }
    for (size_t at = 0; result == 0 && at < n_bytes; at += sizeof bytes) {
        const size_t left = n_bytes - at;

        result = gguf_source_read_unchecked(source, offset + at,
                                            left < sizeof bytes ? left : sizeof bytes, bytes);
    }
    return result;
}

int gguf_source_lock(const struct gguf_source *source)
{
    if (!source->mapping)
        return source->size_bytes == 0 ? 0 : -ENOTSUP;
    return mlock2(source->mapping, source->size_bytes, MLOCK_ONFAULT) == 0 ? 0 : -errno;
}
