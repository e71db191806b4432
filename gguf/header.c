#include "gguf/header.h"

#include "gguf/source.h"
#include "gguf/support/arrays.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <unistd.h>

/* The first step copies the whole header of a small file, and little of the data after it. */
#define FIRST_STEP_BYTES ((size_t)4 << 10)
#define LAST_STEP_BYTES  ((size_t)1 << 20)
/* Memory is made writable in steps of a huge page. */
#define MEMORY_STEP_BYTES ((uint64_t)2 << 20)
#define COMPARED_BYTES    ((size_t)64 << 10)

static void set_end(struct gguf_header *header, uint64_t n_bytes)
{
    header->n_bytes = n_bytes;
    header->left_out_bytes =
        header->n_gaps > 0 ? header->gaps[header->n_gaps - 1].left_out_bytes : 0;
    header->end_offset = header->n_bytes + header->left_out_bytes;
}

/* Address space costs nothing; it is reserved so that the copy can grow in its place. */
static int reserve(struct gguf_header *header, const struct gguf_source *source)
{
    /* A multiple of the huge page size, else Linux does not align the mapping for huge pages. */
    const uint64_t n_bytes =
        (MIN(header->limit_bytes, source->size_bytes) / MEMORY_STEP_BYTES + 1) * MEMORY_STEP_BYTES;
    void *bytes = mmap(NULL, n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (bytes == MAP_FAILED)
        return -ENOMEM;
    header->bytes = bytes;
    header->reserved_bytes = n_bytes;
    header->step_bytes = FIRST_STEP_BYTES;
    return 0;
}

static int make_writable(struct gguf_header *header, uint64_t n_bytes)
{
    uint64_t more;

    if (n_bytes <= header->writable_bytes)
        return 0;
    more = (n_bytes + MEMORY_STEP_BYTES - 1) / MEMORY_STEP_BYTES * MEMORY_STEP_BYTES;
    if (mprotect(header->bytes, more, PROT_READ | PROT_WRITE) != 0)
        return -ENOMEM;
    /* Huge pages save page faults in a large header. The copy works without them. */
    if (header->writable_bytes > 0)
        madvise(header->bytes + header->writable_bytes, more - header->writable_bytes,
                MADV_HUGEPAGE);
    header->writable_bytes = more;
    return 0;
}

/*
 * Compute how many bytes to copy at `offset`, at least needed_bytes. Returns 0, or a negative errno
 * if they cannot be copied.
 */
static int choose_step(const struct gguf_header *header, const struct gguf_source *source,
                       uint64_t offset, uint64_t needed_bytes, size_t *n_bytes)
{
    uint64_t step = header->step_bytes;

    if (needed_bytes > header->limit_bytes - header->n_bytes)
        return -E2BIG;
    step = MIN(step, header->limit_bytes - header->n_bytes);
    step = MIN(step, gguf_source_end(source) - offset);
    if (source->is_growing && !gguf_source_has(source, offset, step)) {
        step = MIN(step, needed_bytes);
        if (!gguf_source_has(source, offset, step))
            return -EAGAIN;
    }
    *n_bytes = (size_t)step;
    return 0;
}

static int copy_step(struct gguf_header *header, const struct gguf_source *source,
                     uint64_t needed_bytes)
{
    const struct gguf_source_kind *kind = source->kind;
    const uint64_t offset = header->end_offset;
    size_t n_bytes;
    int result = choose_step(header, source, offset, needed_bytes, &n_bytes);

    if (result == 0 && kind->count_hole_bytes) {
        header->hole_bytes += kind->count_hole_bytes(source, offset, n_bytes);
        if (header->hole_bytes > header->limit_hole_bytes)
            result = -EFBIG;
    }
    if (result == 0)
        result = make_writable(header, header->n_bytes + n_bytes);
    /* Not gguf_source_read(), which would look for holes again, as choose_step() did. */
    if (result == 0)
        result = kind->read(source, offset, n_bytes, header->bytes + header->n_bytes);
    if (result < 0)
        return result;
    set_end(header, header->n_bytes + n_bytes);
    if (header->step_bytes < LAST_STEP_BYTES)
        header->step_bytes *= 2;
    return 0;
}

int gguf_header_reach(struct gguf_header *header, const struct gguf_source *source,
                      uint64_t end_offset)
{
    if (end_offset <= header->end_offset)
        return 0;
    if (!header->bytes && reserve(header, source) < 0)
        return -ENOMEM;
    while (header->end_offset < end_offset) {
        const int result = copy_step(header, source, end_offset - header->end_offset);

        if (result < 0)
            return result;
    }
    return 0;
}

int gguf_header_leave_out(struct gguf_header *header, uint64_t offset, uint64_t n_bytes)
{
    const uint64_t left_out = header->left_out_bytes, start = offset - left_out;
    const uint64_t copied = header->n_bytes - start; /* ahead of the parser */
    const uint64_t dropped = MIN(copied, n_bytes);

    if (n_bytes == 0)
        return 0;
    if (gguf_reserve(&header->gaps, &header->room, header->n_gaps + 1, sizeof *header->gaps) < 0)
        return -ENOMEM;
    header->gaps[header->n_gaps++] = (struct gguf_header_gap){start, left_out + n_bytes};
    if (copied > dropped)
        memmove(header->bytes + start, header->bytes + start + dropped, copied - dropped);
    set_end(header, header->n_bytes - dropped);
    header->hole_bytes -= MIN(header->hole_bytes, dropped);
    header->step_bytes = FIRST_STEP_BYTES;
    return 0;
}

void gguf_header_rewind(struct gguf_header *header)
{
    /* A gap before the model. */
    const size_t n_kept = header->n_gaps > 0 && header->gaps[0].start == 0;

    if (header->n_gaps == n_kept)
        return;
    header->hole_bytes = 0;
    header->n_gaps = n_kept;
    set_end(header, header->gaps[n_kept].start);
    header->step_bytes = FIRST_STEP_BYTES;
}

void gguf_header_finish(struct gguf_header *header, uint64_t end_offset)
{
    const uint64_t n_bytes = end_offset - header->left_out_bytes;
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t kept_bytes = (n_bytes + page_bytes - 1) / page_bytes * page_bytes;

    assert(n_bytes <= header->n_bytes);
    set_end(header, n_bytes);
    if (kept_bytes >= header->reserved_bytes)
        return;
    if (munmap(header->bytes + kept_bytes, header->reserved_bytes - kept_bytes) == 0) {
        header->reserved_bytes = kept_bytes;
        header->writable_bytes = MIN(header->writable_bytes, kept_bytes);
    }
}

static int compare_stretch(const struct gguf_source *source, const uint8_t *copy, uint64_t offset,
                           uint64_t n_bytes)
{
    uint8_t now[COMPARED_BYTES];

    while (n_bytes > 0) {
        const size_t n = (size_t)MIN(n_bytes, sizeof now);
        /* No byte can be missing: a growing source is never compared. */
        const int result = source->kind->read(source, offset, n, now);

        if (result < 0)
            return result;
        if (memcmp(copy, now, n) != 0)
            return -ESTALE;
        copy += n;
        offset += n;
        n_bytes -= n;
    }
    return 0;
}

int gguf_header_compare(const struct gguf_header *header, const struct gguf_source *source)
{
    uint64_t start = 0, left_out = 0;
    int result = 0;

    for (size_t i = 0; result == 0 && i <= header->n_gaps; i++) {
        const uint64_t end = i < header->n_gaps ? header->gaps[i].start : header->n_bytes;

        result = compare_stretch(source, header->bytes + start, start + left_out, end - start);
        start = end;
        left_out = i < header->n_gaps ? header->gaps[i].left_out_bytes : 0;
    }
    return result;
}

void gguf_header_free(struct gguf_header *header)
{
    if (header->reserved_bytes > 0)
        munmap(header->bytes, header->reserved_bytes);
    free(header->gaps);
    *header = (struct gguf_header){0};
}
