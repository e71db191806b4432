/*
 * A source provides the bytes of one file of a model. Only this interface knows the kind of a
 * source. The model is the whole file or, inside a larger file, a range of it; see gguf/locate.h.
 * All offsets count from the start of the file.
 *
 * Functions return 0 or a negative errno unless they say otherwise. Any thread may call those that
 * take a const source.
 */
#ifndef GGUFS_GGUF_SOURCE_H
#define GGUFS_GGUF_SOURCE_H

#include "gguf/header.h"
#include "gguf/report.h"
#include "gguf/support/file_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * A kind of source: a row of the table in gguf/source.c. Members that return int return 0 or a
 * negative errno. Members marked optional may be NULL.
 */
struct gguf_source_kind {
    /*
     * Return true if the kind opens `path`, given by the user or made from the name of a shard. The
     * first kind in the table that fits is used. NULL: it fits every path.
     */
    bool (*fits)(const char *path);

    /*
     * Open `path`: set size_bytes, and whichever of descriptor and mapping the kind has. A growing
     * source has no mapping, which would end where it ends now. Reports why it fails; close() is
     * called even then.
     */
    int (*open)(struct gguf_source *source, const char *path, struct gguf_report *report);
    void (*close)(struct gguf_source *source);

    /* Copy n_bytes from `offset`. -EIO if any of them cannot be read. */
    int (*read)(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out);

    int (*get_status)(const struct gguf_source *source, struct gguf_file_status *status);

    /*
     * Optional; see gguf_source_has(). Called for growing sources only. Without it every byte up to
     * size_bytes is there.
     */
    bool (*has)(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes);

    /* Optional: return how many of these bytes are holes, which take no space and read as zeros. */
    uint64_t (*count_hole_bytes)(const struct gguf_source *source, uint64_t offset,
                                 uint64_t n_bytes);

    /* Optional; see gguf_source_find_pieces(). */
    struct gguf_pieces (*find_pieces)(const struct gguf_source *source, uint64_t offset);
};

/* Where a byte of a source lies, and those after it. */
struct gguf_pieces {
    const char *path; /* of the file; lives as long as the source */
    uint64_t offset;  /* in that file */
    /*
     * If n_files > 1, the data that begin there are in pieces of piece_bytes, taken in turn from as
     * many files, in each from the same offset on.
     */
    uint32_t n_files;
    uint64_t piece_bytes;
};

struct gguf_source {
    const struct gguf_source_kind *kind;
    bool is_growing;     /* bytes may be missing now and be there later, as the user said */
    char *path;          /* absolute, symbolic links not resolved; owned */
    uint64_t size_bytes; /* of the file when it was opened */
    /*
     * The model's bytes in the file. end_offset is size_bytes unless the model ends before; of a
     * growing file it may lie past size_bytes, and is UINT64_MAX if the end is unknown.
     */
    uint64_t start_offset, end_offset;
    /* The only descriptor that the daemon keeps open; -1 if the kind has none. */
    int descriptor;
    /* Exactly the bytes that read() gives. NULL if there are none, or the kind changes bytes. */
    const uint8_t *mapping;
    void *state; /* what else the kind needs; its open() makes it, its close() frees it */
    struct gguf_header header;
    struct gguf_changes *changes; /* changes since then; owned */
};

/*
 * Open the file at `path` as the kind that fits. `is_growing`: it is still being written. On
 * success gguf_source_close() must be called. On failure `report` has the reason.
 */
int gguf_source_open(const char *path, bool is_growing, struct gguf_source *source,
                     struct gguf_report *report);

/*
 * Open a source of a kind that is not found by its path, and with a state that was made before. The
 * source takes the state over, also on failure. Otherwise like gguf_source_open().
 */
int gguf_source_open_as(const struct gguf_source_kind *kind, void *state, const char *path,
                        bool is_growing, struct gguf_source *source, struct gguf_report *report);

/* Close a source. Does nothing if it is all zero. */
void gguf_source_close(struct gguf_source *source);

/* Return where the model's bytes ended when the file was opened. */
static inline uint64_t gguf_source_end(const struct gguf_source *source)
{
    return source->end_offset < source->size_bytes ? source->end_offset : source->size_bytes;
}

/*
 * Return true if all n_bytes at `offset` have been written: none lies past the model's end or, if
 * the source is growing, in a hole. Programs that reserve space or download in several places leave
 * holes. A file system finds holes by its blocks, or not at all.
 */
bool gguf_source_has(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes);

/*
 * Copy n_bytes from `offset` to `out`. -EIO if they cannot be read or are not there yet, else what
 * gguf_source_check() returns.
 */
int gguf_source_read(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out);

/* Like gguf_source_read(), without gguf_source_check(): the bytes may be those of another file. */
int gguf_source_read_unchecked(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                               void *out);

/*
 * Use n_bytes at `offset` without copying them where the source is mapped. `use` is called with
 * consecutive stretches, `at` bytes behind `offset`: one stretch if the source is mapped, else
 * copies of at most GGUF_LENT_BYTES. Every stretch but the last is a multiple of unit_bytes, which
 * must be at most GGUF_LENT_BYTES. Returns what gguf_source_read() does.
 *
 * A page of the mapping that cannot be read interrupts `use`, which may then be called once more
 * from the start: it must hold no lock, allocate nothing and depend on no earlier call. The bytes
 * may change while it reads them.
 */
#define GGUF_LENT_BYTES ((size_t)64 << 10)
typedef void gguf_bytes_user(void *argument, uint64_t at, const uint8_t *bytes, size_t n_bytes);
int gguf_source_lend(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                     size_t unit_bytes, gguf_bytes_user *use, void *argument);

/*
 * Like gguf_source_lend(), without gguf_source_check(), which costs a system call: a loop over
 * short rows calls that once, at its end.
 */
int gguf_source_lend_unchecked(const struct gguf_source *source, uint64_t offset, size_t n_bytes,
                               size_t unit_bytes, gguf_bytes_user *use, void *argument);

/*
 * Check that the bytes up to end_offset are still those of the file that was opened. Call it after
 * reading: a mapped file that became shorter reads as zeros up to the end of the page.
 *
 * -EIO if the source has become shorter than end_offset. If its times changed and the size did not,
 * its header is compared once with the copy: 0 if they are equal, for then only times or tensor
 * data changed, and the generation is increased. -ESTALE if header or size changed. A growing
 * source never becomes stale.
 */
int gguf_source_check(const struct gguf_source *source, uint64_t end_offset);

/*
 * Get the status of the file that holds the source's bytes at the same offsets, for others who map
 * it. -ENODATA if there is no such file: the source is growing, or its kind changes bytes. Else
 * what gguf_source_check() returns for the whole source.
 */
int gguf_source_get_file(const struct gguf_source *source, struct gguf_file_status *status);

/* Return how often gguf_source_check() has found new times and an unchanged header. */
unsigned gguf_source_generation(const struct gguf_source *source);

/* Return the modification time at the opening or at the last increase of the generation. */
struct timespec gguf_source_modified(const struct gguf_source *source);

/* Find where the byte at `offset` lies: there, unless the source joins files. */
struct gguf_pieces gguf_source_find_pieces(const struct gguf_source *source, uint64_t offset);

/*
 * Bring n_bytes at `offset` into the system's cache. -EIO if they cannot be read.
 */
int gguf_source_prefetch(const struct gguf_source *source, uint64_t offset, size_t n_bytes);

/* Lock all pages into memory as they come. -ENOTSUP if the source is not mapped. */
int gguf_source_lock(const struct gguf_source *source);

#endif
