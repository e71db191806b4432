#include "gguf/source.h"

#include "gguf/faults.h"

#include <errno.h>

bool gguf_source_has(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes)
{
    const uint64_t end = source->is_growing ? source->end_offset : gguf_source_end(source);

    return n_bytes <= end && offset <= end - n_bytes &&
           (!source->is_growing || source->kind->has(source, offset, n_bytes));
}

int gguf_source_read(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    /* Check for holes before reading: a hole may become data meanwhile, but data never a hole. */
    if (source->is_growing && !gguf_source_has(source, offset, n_bytes))
        return -EIO;
    return source->kind->read(source, offset, n_bytes, out);
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
        const int result = gguf_source_read(source, offset + at, n, bytes);

        if (result < 0)
            return result;
        loan->use(loan->argument, at, bytes, n);
        at += n;
    }
    return 0;
}

int gguf_source_lend(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                     size_t unit_bytes, gguf_bytes_user *use, void *argument)
{
    struct loan loan = {.n_bytes = n_bytes, .use = use, .argument = argument};
    int result = -EIO;

    if (source->mapping && n_bytes <= source->size_bytes &&
        offset <= source->size_bytes - n_bytes) {
        loan.bytes = source->mapping + offset;
        result = gguf_faults_guard(use_mapping, &loan);
    }
    /* A page that cannot be mapped, for example a hole in a full tmpfs, may still be read. */
    if (result < 0)
        result = lend_copies(source, offset, unit_bytes, &loan);
    return result;
}

struct gguf_pieces gguf_source_find_pieces(const struct gguf_source *source, uint64_t offset)
{
    if (source->kind->find_pieces)
        return source->kind->find_pieces(source, offset);
    return (struct gguf_pieces){.path = source->path, .offset = offset, .n_files = 1};
}
