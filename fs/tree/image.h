/*
 * Images: what a file of the tree consists of. An image is an ordered list of segments, none of
 * which holds the bytes of a tensor; fs_image_read() makes any slice of them, and is the only way
 * by which contents are read.
 *
 * Build an image with the add functions, which return 0, -ENOMEM, or -EOVERFLOW beyond 2^63 bytes.
 * After that it does not change, and any thread may read it.
 */
#ifndef GGUFS_FS_IMAGE_H
#define GGUFS_FS_IMAGE_H

#include "fs/tree/json.h"
#include "gguf/model.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Write a text of the model, which is always the same and is made anew whenever it is read. Returns
 * 0 or a negative errno.
 */
typedef int fs_text_writer(const struct gguf_model *model, const void *subject,
                           struct fs_text *text);

enum fs_segment_kind {
    FS_LITERAL,   /* bytes that the segment points to */
    FS_SOURCE,    /* bytes of a file as they are stored */
    FS_CONVERTED, /* the data of a tensor in little-endian blocks of today */
    FS_DECODED,   /* the values of a tensor as float32 */
    FS_TEXT,      /* what a writer writes */
    FS_ZEROS,
};

struct fs_segment {
    uint64_t end; /* in bytes from the start of the image */
    enum fs_segment_kind kind;
    union {
        const char *literal;
        const struct gguf_tensor *tensor; /* of FS_CONVERTED and FS_DECODED */
        struct {
            const struct gguf_source *file;
            uint64_t offset;
        } source;
        struct {
            fs_text_writer *write;
            const void *subject;
            size_t capacity; /* that the writer needs */
        } text;
    };
};

struct fs_image {
    const struct gguf_model *model;
    uint64_t size_bytes;
    struct fs_segment *segments;
    size_t n_segments;
    size_t room;  /* segments that fit */
    char **owned; /* literals to free */
    size_t n_owned;
};

void fs_image_begin(struct fs_image *image, const struct gguf_model *model);
void fs_image_free(struct fs_image *image);

/* `literal` must live as long as the image. */
int fs_image_add_literal(struct fs_image *image, const char *literal);

/* Bytes from malloc(), which the image frees, now if it fails. */
int fs_image_add_owned(struct fs_image *image, char *bytes, size_t n_bytes);

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes);

/* Bytes of one of the model's files. */
int fs_image_add_source(struct fs_image *image, const struct gguf_source *file, uint64_t offset,
                        uint64_t n_bytes);

/* The name as a JSON string. */
int fs_image_add_json_string(struct fs_image *image, struct gguf_string string);

/* The tensor's data as they are stored. Its type must be known. */
int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor);

/* The tensor's data in blocks of dequant_modern(), which must not be plain floats for old blocks.
 */
int fs_image_add_modern_data(struct fs_image *image, const struct gguf_tensor *tensor);

/* The tensor's values as float32. Its type must have a decoder. */
int fs_image_add_values(struct fs_image *image, const struct gguf_tensor *tensor);

/* A text of known length, for which the writer needs room for `capacity` bytes. */
int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const void *subject,
                      size_t length, size_t capacity);

/*
 * Check the model's first file, whose header every file of the tree shows something of, and the
 * files that the image has bytes of. Returns 0, or -ESTALE as gguf_source_check() does.
 */
int fs_image_check(const struct fs_image *image);

/*
 * Writes bytes `offset` to `offset + length` of the image to `out`, as far as it has them. Returns
 * the number written, which is below `length` only at the image's end, or a negative errno: -EIO
 * if the source has shrunk or can't be read, -ESTALE if it was written to, -ENOMEM.
 */
ssize_t fs_image_read(const struct fs_image *image, uint64_t offset, size_t length, char *out);

#endif
