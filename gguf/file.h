/*
 * A file of a model: its source, the copy of its header, and the detection of changes.
 *
 * Functions return 0 or a negative errno unless they say otherwise. Any thread may call those that
 * take a const file.
 */
#pragma once

#include "gguf/header.h"
#include "gguf/source.h"

#include <time.h>

/* All zero: not open. */
struct gguf_file {
    struct gguf_source source;
    struct gguf_header header;
    struct gguf_changes *changes; /* found since the opening; owned */
};

/*
 * Open the file at `path` as a source of `kind` with a state, which the file owns, also on failure.
 * The state of the kinds in gguf/source.h is the struct gguf_store_access that opens files (see
 * gguf/stores/model_list.h), which is not owned; NULL: a system call. size_bytes is for kinds that
 * open nothing. On success gguf_file_close() must be called. On failure `report` has the reason.
 */
int gguf_file_open(const struct gguf_source_kind *kind, const void *state, uint64_t size_bytes,
                   const char *path, struct gguf_file *file, struct gguf_report *report);

/* Close a file. Does nothing if it is all zero. */
void gguf_file_close(struct gguf_file *file);

/*
 * Check that the source has not changed since it was opened and still has end_offset bytes. Call it
 * after reading: a mapped file that became shorter reads as zeros up to the end of the page.
 *
 * -EIO if the source has become shorter than end_offset. If its times changed and the size did not,
 * its header is compared once with the copy. If they are equal, only times or tensor data changed:
 * increases the generation and returns 0. -ESTALE if header or size changed. A growing source never
 * becomes stale.
 */
int gguf_file_check(const struct gguf_file *file, uint64_t end_offset);

/* gguf_source_read(), then gguf_file_check(). */
int gguf_file_read(const struct gguf_file *file, uint64_t offset, size_t n_bytes, void *out);

/*
 * Get the status of the file that holds the source's bytes at the same offsets, for other programs
 * that map it. -ENODATA if no file does: the source is growing, or its kind changes bytes. Else as
 * gguf_file_check() for the whole source.
 */
int gguf_file_get_mapped(const struct gguf_file *file, struct gguf_file_status *status);

/* Return how often gguf_file_check() has found new times and an unchanged header. */
unsigned gguf_file_generation(const struct gguf_file *file);

/* Return the modification time at the opening or at the last increase of the generation. */
struct timespec gguf_file_modified(const struct gguf_file *file);
