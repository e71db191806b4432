/*
 * A source provides the bytes of one file. The layer above, gguf/file.h, has the parser's copy of
 * the header, the detection of changes and the table of kinds. The model is the whole file or,
 * inside a larger file, a range of it; see gguf/locate.h. All offsets count from the start of the
 * file, so that messages and `info` give the offsets that users find there.
 *
 * Functions return 0 or a negative errno unless they say otherwise. Any thread may call those that
 * take a const source.
 */
#pragma once

#include "gguf/report.h"
#include "gguf/support/file_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gguf_source;

/*
 * A kind of source: of a file, or one that a parser makes from other files. Members that return int
 * return 0 or a negative errno. Members marked optional may be NULL.
 */
struct gguf_source_kind {
    /*
     * Optional: open `path`: set size_bytes, and whichever of descriptor and mapping the kind has.
     * A growing source has no mapping: it would end where the file ends now. Reports why it fails;
     * close() is called even then.
     */
    int (*open)(struct gguf_source *source, const char *path, struct gguf_report *report);
    void (*close)(struct gguf_source *source);

    /* Copy n_bytes from `offset`. -EIO if any of them cannot be read. */
    int (*read)(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out);

    int (*get_status)(const struct gguf_source *source, struct gguf_file_status *status);

    /*
     * Optional; see gguf_source_has(). A kind that has it is growing: bytes may be missing now and
     * be there later. Without it every byte up to size_bytes is there.
     */
    bool (*has)(const struct gguf_source *source, uint64_t offset, uint64_t n_bytes);

    /* Optional: return how many of these bytes are holes, which take no space and read as zeros. */
    uint64_t (*count_hole_bytes)(const struct gguf_source *source, uint64_t offset,
                                 uint64_t n_bytes);

    /* Optional; see gguf_source_find_pieces(). */
    struct gguf_pieces (*find_pieces)(const struct gguf_source *source, uint64_t offset);
};

/* The place of a byte of a source, and of the bytes after it. */
struct gguf_pieces {
    const char *path; /* of the file; lives as long as the source; NULL: no file has these bytes */
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
    bool is_growing;     /* the kind has `has` */
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
};

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

/* Copy n_bytes from `offset` to `out`. -EIO if they cannot be read or are not there yet. */
int gguf_source_read(const struct gguf_source *source, uint64_t offset, size_t n_bytes, void *out);

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
 * Find the place of the byte at `offset`: the same offset in the source's file, unless the source
 * joins files.
 */
struct gguf_pieces gguf_source_find_pieces(const struct gguf_source *source, uint64_t offset);

/* ---- files of their own ---- */

/* A complete file, mapped as a whole. */
extern const struct gguf_source_kind gguf_mapped_file;

/* A complete file, read with pread(), so that a file that shrinks raises no signal. */
extern const struct gguf_source_kind gguf_read_file;

/*
 * A file that is still being written, read with pread(): a mapping would end where the file ends
 * now.
 */
extern const struct gguf_source_kind gguf_growing_file;
