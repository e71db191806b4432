/*
 * Detects changes of a file while it is in use: its status is compared with the one at the opening,
 * and its header with the parser's copy when only the times differ.
 *
 * Functions return 0 or a negative errno unless they say otherwise. Any thread may call those that
 * take a const source.
 */
#ifndef GGUFS_GGUF_FILE_CHANGES_H
#define GGUFS_GGUF_FILE_CHANGES_H

#include "gguf/header.h"
#include "gguf/source.h"

#include <time.h>

struct gguf_changes;

/* Begin to watch an open source. On success gguf_changes_free() must be called. */
int gguf_changes_begin(const struct gguf_source *source, struct gguf_changes **changes);

/* Do nothing if it is NULL. */
void gguf_changes_free(struct gguf_changes *changes);

/* See gguf_file_check(). */
int gguf_changes_check(struct gguf_changes *changes, const struct gguf_source *source,
                       const struct gguf_header *header, uint64_t end_offset);

/* Return how often gguf_changes_check() has found new times and an unchanged header. */
unsigned gguf_changes_generation(const struct gguf_changes *changes);

/* Return the modification time at the beginning or at the last increase of the generation. */
struct timespec gguf_changes_modified(struct gguf_changes *changes);

#endif
