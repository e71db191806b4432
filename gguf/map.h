/* Model files in memory: mapped whole, read-only. */
#ifndef GGUFS_GGUF_MAP_H
#define GGUFS_GGUF_MAP_H

#include "gguf/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct gguf_file {
    char *path;          /* absolute, symbolic links left as they are; owned */
    const uint8_t *data; /* size_bytes bytes, mapped; NULL for an empty file */
    uint64_t size_bytes; /* when it was opened */
    int descriptor;      /* of the open file; -1 if there is none */
    struct timespec modified;
    bool is_growing;                /* it is still being written; may be set after it was opened */
    _Atomic uint64_t touched_bytes; /* since the pages were last let go; see gguf_map_touched() */
};

/*
 * Opens and maps the file at `path`. On success gguf_map_close() must be called. On failure
 * returns a negative errno with the reason in `report`.
 */
int gguf_map_open(const char *path, struct gguf_file *file, struct gguf_report *report);

void gguf_map_close(struct gguf_file *file);

/*
 * To be called after reading from the mapping: whether the file still has its first `end_offset`
 * bytes, which read as zeros up to the end of the page if it has not, and whether they are those of
 * the file that was opened. Returns 0, -EIO if they are gone, or -ESTALE if the file is as long as
 * it was but was written to since. Of a file that has only become shorter the rest is good, and one
 * that is growing may be written to.
 */
int gguf_map_check(const struct gguf_file *file, uint64_t end_offset);

/*
 * Whether these bytes of a growing file were written already: they are neither behind its end nor
 * in a hole, as programs leave one that reserve the space or write from several places at once. A
 * file system finds holes by its blocks, or not at all.
 */
bool gguf_map_has(const struct gguf_file *file, uint64_t offset, uint64_t n_bytes);

/*
 * Copies `n_bytes` from `offset` to `out` without touching the mapping: to map pages and to let go
 * of them again costs more than the copy. Returns 0 or what gguf_map_check() does; -EIO too for
 * what a growing file does not have yet.
 */
int gguf_map_read(const struct gguf_file *file, uint64_t offset, size_t n_bytes, void *out);

/*
 * To be told after `n_bytes` of the mapping were read. Now and then lets go of all pages, which
 * stay in the system's cache but no longer count as the process's memory. Any thread may call this.
 */
void gguf_map_touched(struct gguf_file *file, uint64_t n_bytes);

/*
 * Calls `touch(argument)`, which reads from mapped files, and returns what it returns; if a page
 * can't be had because the file shrank or its medium fails (SIGBUS), returns -EIO instead.
 * `touch` is then left in the middle: it must not hold a lock, and memory that only it
 * knows is lost. Any thread may call this; calls do not nest. gguf_map_catch_faults() must have
 * been called before.
 */
int gguf_map_guard(int (*touch)(void *argument), void *argument);

/* Installs the SIGBUS handler of gguf_map_guard(), once per process. Returns 0 or -errno. */
int gguf_map_catch_faults(void);

#endif
