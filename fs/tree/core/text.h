/*
 * Texts: contents of files that a writer makes. A text is written when its file is opened, as a
 * whole, and is kept in memory while the file is open.
 */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/interrupt.h"
#include "fs/tree/output/sink.h"

#include <stdint.h>

struct fs_tree;

/* A file with a longer text cannot be opened: -EFBIG. */
#define FS_MAX_TEXT_BYTES ((uint64_t)256 << 20)

/*
 * Write a text about `subject` (a struct gguf_key, gguf_tensor, fs_shard, or NULL for the model).
 * Every call must write the same number of bytes: the size of the file comes from a call that only
 * counts. Errors go to the sink; long loops end when sink->error is set.
 */
typedef void fs_text_writer(const struct fs_tree *tree, const void *subject, struct fs_sink *sink);

/*
 * Write a text into memory; the caller frees *text. `interrupt` may be NULL. Returns 0, the
 * writer's error, -ENOMEM, -EINTR or -EFBIG.
 */
int fs_text_make(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, char **text, uint64_t *size_bytes);

/* Get the size of a text without keeping it. Returns 0, the writer's error, or -EINTR. */
int fs_text_size(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, uint64_t *size_bytes);

/* Add a text to an image. Returns as fs_text_make() and fs_image_add(). */
int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const struct fs_tree *tree,
                      const void *subject, const struct fs_interrupt *interrupt);
