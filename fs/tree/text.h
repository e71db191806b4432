/*
 * Texts that are written again for each read. Only marks are kept, places from which writing can
 * continue; they take less than a hundredth of the text's size. A text does not change once it is
 * made, so any thread may read it.
 */
#ifndef GGUFS_FS_TEXT_H
#define GGUFS_FS_TEXT_H

#include "fs/tree/interrupt.h"
#include "fs/tree/sink.h"
#include "fs/tree/value_walk.h"

#include <stddef.h>
#include <stdint.h>

struct fs_tree;

/*
 * How far a text has been written. All zero at its start. Only the writer uses the members; the
 * comments say what the present writers use them for.
 */
struct fs_place {
    uint64_t item;   /* number of the next key or tensor */
    uint64_t offset; /* a running sum */
    bool in_value;   /* the value of `item` is being written */
    struct fs_value_walk value;
};

/*
 * Write the next piece of a text about `subject` (a struct gguf_key, gguf_tensor, fs_shard, or NULL
 * for the model), at most a line or some KiB, and move `place` past it. Returns 1 if there may be
 * more, 0 at the end, or a negative errno.
 *
 * No text is kept: the writer runs again for every opening and every read, which also writes up to
 * 64 KiB before its slice. So a piece must take little time. An interrupt is noticed after a piece
 * and only by an opening.
 *
 * The bytes must be the same each time. Those that are made from tensor data may differ once the
 * data have changed, but never in number, because sizes and marks are kept.
 */
typedef int fs_text_writer(const struct fs_tree *tree, const void *subject, struct fs_place *place,
                           struct fs_sink *sink);

struct fs_text;

/*
 * Make a text: write all of it once, without keeping it, to find its size and the marks. Free *text
 * with fs_text_free(). Returns 0, -ENOMEM, -EINTR if interrupted, or the writer's error.
 */
int fs_text_make(fs_text_writer *write, const struct fs_tree *tree, const void *subject,
                 const struct fs_interrupt *interrupt, struct fs_text **text);

void fs_text_free(struct fs_text *text);

uint64_t fs_text_size(const struct fs_text *text);

/* Return the memory that the text takes, in bytes. */
size_t fs_text_memory(const struct fs_text *text);

/*
 * Write bytes `offset` to `offset + length`, which must lie in the text, to `out`. Returns 0, the
 * writer's error, or -EIO if it wrote less than before.
 */
int fs_text_read(const struct fs_text *text, uint64_t offset, size_t length, char *out);

#endif
