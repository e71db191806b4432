#include "gguf/source.h"

#include "gguf/stores/model_list.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int open_read(struct gguf_source *source, const char *path, struct gguf_report *report)
{
    const struct gguf_store_access *opener = source->state ? source->state : &gguf_direct_access;
    struct gguf_file_status status;
    int result = opener->open(opener->argument, path);

    source->descriptor = result;
    if (result >= 0)
        result = gguf_get_file_status(source->descriptor, &status);
    if (result == -EISDIR)
        return gguf_error(report, GGUF_RULE_NOT_A_FILE, result, GGUF_NO_PLACE,
                          "is a directory; name the model file in it (the model comes first)");
    if (result == -EINVAL)
        return gguf_error(
            report, GGUF_RULE_NOT_A_FILE, result, GGUF_NO_PLACE,
            "is not a regular file, so it cannot be mapped into memory; store the data "
            "in a file first");
    if (result == -EXDEV)
        return gguf_error(report, GGUF_RULE_NOT_A_FILE, result, GGUF_NO_PLACE,
                          "is a link out of the folder; name the file itself if you trust it");
    if (result < 0)
        return gguf_system_error(report, result, GGUF_NO_PLACE);
    source->size_bytes = status.size_bytes;
    return 0;
}

static int open_mapped(struct gguf_source *source, const char *path, struct gguf_report *report)
{
    const int result = open_read(source, path, report);
    void *mapping;

    if (result < 0 || source->size_bytes == 0)
        return result;
    mapping = mmap(NULL, source->size_bytes, PROT_READ, MAP_PRIVATE, source->descriptor, 0);
    if (mapping == MAP_FAILED)
        return gguf_error(report, GGUF_RULE_OPEN, -errno, GGUF_NO_PLACE,
                          "cannot map %ju bytes into memory: %s", (uintmax_t)source->size_bytes,
                          strerror(errno));
    /* A file that is not in memory is read faster in huge pages. If it fails, pages are small. */
    madvise(mapping, source->size_bytes, MADV_HUGEPAGE);
    source->mapping = mapping;
    return 0;
}

static void close_file(struct gguf_source *source)
{
    if (source->mapping)
        munmap((void *)(uintptr_t)source->mapping, source->size_bytes);
    if (source->descriptor >= 0)
        close(source->descriptor);
}

static int read_file(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out)
{
    char *to = out;

    while (n_bytes > 0) {
        const ssize_t n = pread(source->descriptor, to, n_bytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -EIO; /* any error of the disk or file system */
        to += n;
        offset += (uint64_t)n;
        n_bytes -= (size_t)n;
    }
    return 0;
}

static int get_status(const struct gguf_source *source, struct gguf_file_status *status)
{
    return gguf_get_file_status(source->descriptor, status);
}

/*
 * Return the first byte from `offset` on that is in a hole (`what` SEEK_HOLE) or in data
 * (SEEK_DATA); at most `end`.
 */
static uint64_t seek(const struct gguf_source *source, uint64_t offset, int what, uint64_t end)
{
    /* Nobody uses the descriptor's own position. ENXIO: there are no more data. */
    const off_t found = lseek(source->descriptor, (off_t)offset, what);

    return found < 0 || (uint64_t)found > end ? end : (uint64_t)found;
}

static bool has_written(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes)
{
    struct gguf_file_status status;

    if (get_status(source, &status) < 0 || n_bytes > status.size_bytes ||
        offset > status.size_bytes - n_bytes)
        return false;
    return n_bytes == 0 || seek(source, offset, SEEK_HOLE, offset + n_bytes) == offset + n_bytes;
}

/* If the file system does not report holes, SEEK_HOLE finds only the end of the file. */
static uint64_t count_hole_bytes(const struct gguf_source *source, uint64_t offset,
                                 uint64_t n_bytes)
{
    const uint64_t end = offset + n_bytes;
    uint64_t count = 0;

    while (offset < end) {
        const uint64_t hole = seek(source, offset, SEEK_HOLE, end);

        offset = hole < end ? seek(source, hole, SEEK_DATA, end) : end;
        count += offset - hole;
    }
    return count;
}

#define OF_FILES                                                                                   \
    .close = close_file, .read = read_file, .get_status = get_status,                              \
    .count_hole_bytes = count_hole_bytes

const struct gguf_source_kind gguf_mapped_file = {.open = open_mapped, OF_FILES};
const struct gguf_source_kind gguf_read_file = {.open = open_read, OF_FILES};
const struct gguf_source_kind gguf_growing_file = {.open = open_read, .has = has_written, OF_FILES};
