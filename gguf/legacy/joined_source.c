#include "gguf/legacy/joined_source.h"

#include "gguf/support/arrays.h"
#include "gguf/support/times.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Consecutive bytes of the file: of parts, or of `made`. */
struct stretch {
    uint64_t end;         /* in the file */
    uint64_t offset;      /* in each part, or in `made` */
    uint64_t piece_bytes; /* taken from a part before the next one follows */
    uint32_t n_parts;     /* the first ones; 0: `made` */
};

struct gguf_joined {
    struct gguf_file parts[GGUF_MAX_PARTS];
    uint32_t n_parts;
    struct stretch *stretches;
    size_t n_stretches, room;
    struct gguf_buffer made;
};

/* ---- building ---- */

struct gguf_joined *gguf_joined_make(void)
{
    return calloc(1, sizeof(struct gguf_joined));
}

void gguf_joined_free(struct gguf_joined *joined)
{
    if (!joined)
        return;
    for (uint32_t i = 0; i < joined->n_parts; i++)
        gguf_file_close(&joined->parts[i]);
    gguf_buffer_free(&joined->made);
    free(joined->stretches);
    free(joined);
}

uint64_t gguf_joined_size(const struct gguf_joined *joined)
{
    return joined->n_stretches > 0 ? joined->stretches[joined->n_stretches - 1].end : 0;
}

static int add(struct gguf_joined *joined, struct stretch stretch, uint64_t n_bytes)
{
    struct stretch *stretches;

    if (n_bytes == 0)
        return 0;
    if (__builtin_add_overflow(gguf_joined_size(joined), n_bytes, &stretch.end) ||
        stretch.end > INT64_MAX)
        return -EOVERFLOW;
    stretches =
        gguf_grow(joined->stretches, &joined->room, joined->n_stretches + 1, sizeof *stretches);
    if (!stretches)
        return -ENOMEM;
    joined->stretches = stretches;
    stretches[joined->n_stretches++] = stretch;
    return 0;
}

int gguf_joined_add_bytes(struct gguf_joined *joined, const void *bytes, size_t n_bytes)
{
    const struct stretch stretch = {.offset = joined->made.length, .piece_bytes = n_bytes};

    if (gguf_buffer_add(&joined->made, bytes, n_bytes) < 0)
        return -ENOMEM;
    return add(joined, stretch, n_bytes);
}

int gguf_joined_add_first(struct gguf_joined *joined, uint64_t offset, uint64_t n_bytes)
{
    return gguf_joined_add_pieces(joined, offset, n_bytes, n_bytes, 1);
}

int gguf_joined_add_pieces(struct gguf_joined *joined, uint64_t offset, uint64_t n_bytes,
                           uint64_t piece_bytes, uint32_t n_parts)
{
    const struct stretch stretch = {
        .offset = offset, .piece_bytes = piece_bytes, .n_parts = n_parts};
    uint64_t all_bytes;

    assert(n_bytes == 0 || n_bytes % piece_bytes == 0);
    if (__builtin_mul_overflow(n_bytes, (uint64_t)n_parts, &all_bytes))
        return -EOVERFLOW;
    return add(joined, stretch, all_bytes);
}

/* ---- the source ---- */

/* Consecutive bytes of one part, or of `made`. */
struct run {
    const struct stretch *stretch;
    uint32_t part;
    uint64_t offset;  /* in the part, or in `made` */
    uint64_t n_bytes; /* up to the next part or stretch */
};

/* Find the bytes at `offset`, which lies in the file. */
static struct run find_run(const struct gguf_joined *joined, uint64_t offset)
{
    const struct stretch *stretches = joined->stretches;
    const size_t low =
        gguf_find_end(&stretches->end, joined->n_stretches, sizeof *stretches, offset);
    uint64_t at, piece, skip;
    struct run run;

    at = offset - (low > 0 ? stretches[low - 1].end : 0);
    piece = at / stretches[low].piece_bytes;
    skip = at % stretches[low].piece_bytes;
    run = (struct run){.stretch = &stretches[low],
                       .offset = stretches[low].offset + skip,
                       .n_bytes = stretches[low].piece_bytes - skip};
    if (run.stretch->n_parts > 1) {
        run.part = (uint32_t)(piece % run.stretch->n_parts);
        run.offset += piece / run.stretch->n_parts * run.stretch->piece_bytes;
    }
    return run;
}

static int open_joined(struct gguf_source *source, const char *path, struct gguf_report *report)
{
    (void)path;
    (void)report;
    source->size_bytes = gguf_joined_size(source->state);
    return 0;
}

static void close_joined(struct gguf_source *source)
{
    gguf_joined_free(source->state);
}

static void copy_out(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes)
{
    memcpy((uint8_t *)argument + at, bytes, n_bytes);
}

static int read_joined(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    const struct gguf_joined *joined = source->state;
    uint8_t *to = out;

    if (n_bytes > source->size_bytes || offset > source->size_bytes - n_bytes)
        return -EIO;
    while (n_bytes > 0) {
        const struct run run = find_run(joined, offset);
        const size_t n = run.n_bytes < n_bytes ? (size_t)run.n_bytes : n_bytes;
        int result = 0;

        if (run.stretch->n_parts == 0)
            memcpy(to, joined->made.bytes + run.offset, n);
        else
            result =
                gguf_source_lend(&joined->parts[run.part].source, run.offset, n, 1, copy_out, to);
        if (result < 0)
            return result;
        to += n;
        offset += n;
        n_bytes -= n;
    }
    return 0;
}

/*
 * The newest times of all parts. Two sizes say what happened to the parts: 0 that one has become
 * shorter, so that no byte is certain, and one too large that they are other files.
 */
static int get_joined_status(const struct gguf_source *source, struct gguf_file_status *status)
{
    const struct gguf_joined *joined = source->state;
    uint64_t size_bytes = source->size_bytes;

    for (uint32_t i = 0; i < joined->n_parts; i++) {
        const struct gguf_source *part = &joined->parts[i].source;
        struct gguf_file_status now;
        int result = part->kind->get_status(part, &now);

        if (result < 0)
            return result;
        if (now.size_bytes < part->size_bytes)
            size_bytes = 0;
        else if (gguf_file_check(&joined->parts[i], 0) == -ESTALE && size_bytes > 0)
            size_bytes = UINT64_MAX;
        if (i == 0)
            *status = now;
        if (gguf_is_later(now.modified, status->modified))
            status->modified = now.modified;
        if (gguf_is_later(now.status_changed, status->status_changed))
            status->status_changed = now.status_changed;
    }
    status->size_bytes = size_bytes;
    return 0;
}

static struct gguf_pieces find_joined_pieces(const struct gguf_source *source, uint64_t offset)
{
    const struct gguf_joined *joined = source->state;
    struct run run;

    if (offset >= source->size_bytes)
        return (struct gguf_pieces){.path = source->path, .offset = offset, .n_files = 1};
    run = find_run(joined, offset);
    return (struct gguf_pieces){.path = joined->parts[run.part].source.path,
                                .offset = run.offset,
                                .n_files = run.stretch->n_parts > 1 ? run.stretch->n_parts : 1,
                                .piece_bytes = run.stretch->piece_bytes};
}

static const struct gguf_source_kind joined_file = {
    .open = open_joined,
    .close = close_joined,
    .read = read_joined,
    .get_status = get_joined_status,
    .find_pieces = find_joined_pieces,
};

int gguf_joined_open(struct gguf_joined *joined, struct gguf_file *parts[], uint32_t n_parts,
                     struct gguf_file *file, struct gguf_report *report)
{
    assert(n_parts > 0 && n_parts <= GGUF_MAX_PARTS);
    for (uint32_t i = 0; i < n_parts; i++) {
        assert(!parts[i]->source.is_growing);
        joined->parts[i] = *parts[i];
        *parts[i] = (struct gguf_file){0};
    }
    joined->n_parts = n_parts;
    return gguf_file_open_as(&joined_file, joined, joined->parts[0].source.path, file, report);
}
