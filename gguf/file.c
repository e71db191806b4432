#include "gguf/file.h"

#include "gguf/file_sources.h"

#include <errno.h>

/* The first one that fits is used; the last one fits every path. */
static const struct gguf_source_kind *const kinds[] = {&gguf_growing_file, &gguf_mapped_file};

int gguf_file_open(const char *path, bool is_growing, struct gguf_file *file,
                   struct gguf_report *report)
{
    size_t i = 0;

    while (i + 1 < sizeof kinds / sizeof *kinds && !kinds[i]->fits(path, is_growing))
        i++;
    return gguf_file_open_as(kinds[i], NULL, path, file, report);
}

int gguf_file_open_as(const struct gguf_source_kind *kind, void *state, const char *path,
                      struct gguf_file *file, struct gguf_report *report)
{
    int result;

    *file = (struct gguf_file){.header = {.limit_bytes = GGUF_MAX_HEADER_BYTES,
                                          .limit_hole_bytes = GGUF_MAX_HEADER_HOLE_BYTES}};
    result = gguf_source_open(kind, state, path, &file->source, report);
    if (result < 0)
        return result;
    result = gguf_changes_begin(&file->source, &file->changes);
    if (result < 0) {
        gguf_system_error(report, result, GGUF_NO_PLACE);
        gguf_file_close(file);
    }
    return result;
}

void gguf_file_close(struct gguf_file *file)
{
    gguf_source_close(&file->source);
    gguf_header_free(&file->header);
    gguf_changes_free(file->changes);
    *file = (struct gguf_file){0};
}

int gguf_file_check(const struct gguf_file *file, uint64_t end_offset)
{
    return gguf_changes_check(file->changes, &file->source, &file->header, end_offset);
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
    return gguf_changes_generation(file->changes);
}

struct timespec gguf_file_modified(const struct gguf_file *file)
{
    return gguf_changes_modified(file->changes);
}
