/*
 * Images: the contents of the tree's files. An image is a list of segments, one after the other:
 * bytes in memory, bytes of the model's file, or data that a read function decodes. fs_image_read()
 * reads any slice: it finds the segments and calls their read functions.
 *
 * Build an image with fs_image_add_*(), declared here, in text.h, tensor_segments.h and
 * safetensors_header.h. They return 0, -ENOMEM, or -EOVERFLOW beyond 2^63 bytes. A finished image
 * never changes, and any thread may read it.
 */
#pragma once

#include "fs/tree/core/interrupt.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fs_image;
struct fs_segment;
struct fs_tree;

/* Operations of a kind of segment. Members may be NULL, except `read`. */
struct fs_segment_ops {
    /*
     * Write bytes `offset` to `offset + length` of the segment, which must lie in it, to `out`.
     * Returns 0 or a negative errno.
     */
    int (*read)(const struct fs_image *image, const struct fs_segment *segment, uint64_t offset,
                size_t length, const struct fs_interrupt *interrupt, char *out);
    void (*free)(struct fs_segment *segment); /* what the segment owns */
    /* Return model file `index` of those whose bytes the segment holds, NULL after the last. */
    const struct gguf_file *(*source)(const struct fs_image *image,
                                      const struct fs_segment *segment, unsigned index);
    /* Reads compute the contents and may take minutes. */
    bool is_slow;
};

struct fs_segment {
    uint64_t end; /* in bytes from the start of the image */
    const struct fs_segment_ops *ops;
    union { /* state of the ops, which alone use it */
        struct {
            const void *of;  /* the source or object that it shows; owned if there is a `free` */
            uint64_t offset; /* of the segment's first byte there */
        };
        const void *both[2]; /* two tensors */
    };
};

struct fs_image {
    const struct gguf_model *model;
    const struct fs_tree *tree; /* NULL: it belongs to none */
    uint64_t size_bytes;
    struct fs_segment *segments;
    size_t n_segments;
    size_t room; /* allocated segments */
};

void fs_image_begin(struct fs_image *image, const struct gguf_model *model);
void fs_image_free(struct fs_image *image);

/* Add a segment of n_bytes. If n_bytes is 0 or this fails, the segment is freed. */
int fs_image_add(struct fs_image *image, struct fs_segment segment, uint64_t n_bytes);

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes);

/* Add bytes of one of the model's files. */
int fs_image_add_source(struct fs_image *image, const struct gguf_file *source, uint64_t offset,
                        uint64_t n_bytes);

/* Add bytes from malloc(). The image takes ownership, also if this fails. */
int fs_image_add_made(struct fs_image *image, char *bytes, uint64_t n_bytes);

/*
 * Return true if the image is worth keeping while nobody has the file open: it is slow, and its
 * files do not grow.
 */
bool fs_image_is_worth_keeping(const struct fs_image *image);

/*
 * Return true if reads compute the contents and may take minutes: they should be interruptible, and
 * nothing should be read ahead.
 */
bool fs_image_is_slow(const struct fs_image *image);

/*
 * Return true if the image consists of consecutive bytes of one of the model's files, and get that
 * file and the offset of the first byte there.
 */
bool fs_image_is_of_source(const struct fs_image *image, const struct gguf_file **source,
                           uint64_t *offset);

/*
 * Check for changes, with gguf_file_check(), of the model's first file, because every file of the
 * tree depends on its header, and of the files whose bytes the image holds. Returns 0 or -ESTALE.
 */
int fs_image_check(const struct fs_image *image);

/*
 * Write bytes `offset` to `offset + length` of the image to `out`. `interrupt` may be NULL; only a
 * slow image uses it. Returns the number of bytes written, which is below `length` only at the
 * image's end, or a negative errno: -EIO if the source has shrunk or cannot be read, -ESTALE if it
 * was written to, -ENOMEM, -EINTR.
 */
ssize_t fs_image_read_interruptible(const struct fs_image *image, uint64_t offset, size_t length,
                                    const struct fs_interrupt *interrupt, char *out);

static inline ssize_t fs_image_read(const struct fs_image *image, uint64_t offset, size_t length,
                                    char *out)
{
    return fs_image_read_interruptible(image, offset, length, NULL, out);
}
