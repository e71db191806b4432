/*
 * Images: the contents of the tree's files. An image is an ordered list of segments, none of which
 * holds a tensor's bytes. fs_image_read() gives any slice of it; all contents are read with this
 * one function.
 *
 * Build an image with the add functions, which return 0, -ENOMEM, or -EOVERFLOW beyond 2^63 bytes.
 * After that it does not change, and any thread may read it.
 */
#ifndef GGUFS_FS_IMAGE_H
#define GGUFS_FS_IMAGE_H

#include "fs/tree/arranged.h"
#include "fs/tree/checksums.h"
#include "fs/tree/number_formats.h"
#include "fs/tree/text.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fs_segment_kind {
    FS_LITERAL,      /* bytes that the segment points to */
    FS_NUMBER,       /* 64 bits, little-endian */
    FS_SOURCE_BYTES, /* bytes of a source as they are stored */
    FS_CONVERTED,    /* the data of a tensor in little-endian blocks of dequant_modern() */
    FS_ELEMENTS,     /* the elements of a tensor in some format */
    FS_ENCODED,      /* the elements of a tensor in blocks of some type */
    FS_ARRANGED,     /* elements of tensors in some format and order */
    FS_IMPORTANCE,   /* the quotients of the halves of an importance matrix */
    FS_TEXT,         /* written when read */
    FS_MADE,         /* bytes that were made when the image was built */
    FS_CHECKSUMS,    /* checksums of files, computed when read */
    FS_ZEROS,
};

struct fs_segment {
    uint64_t end; /* in bytes from the start of the image */
    enum fs_segment_kind kind;
    union {
        const char *literal;
        uint64_t number;
        const struct gguf_tensor *converted;
        struct {
            const struct gguf_source *source;
            uint64_t offset;
        } bytes;
        struct {
            const struct gguf_tensor *tensor;
            enum fs_format format;
        } elements;
        struct {
            const struct gguf_tensor *sums, *counts;
        } importance;
        struct {
            const struct gguf_tensor *tensor;
            const struct dequant_type *type;
        } encoded;
        struct fs_arranged *arranged;   /* owned */
        struct fs_text *text;           /* owned */
        char *made;                     /* owned */
        struct fs_checksums *checksums; /* owned */
    };
};

struct fs_image {
    const struct gguf_model *model;
    uint64_t size_bytes;
    struct fs_segment *segments;
    size_t n_segments;
    size_t room; /* allocated segments */
};

void fs_image_begin(struct fs_image *image, const struct gguf_model *model);
void fs_image_free(struct fs_image *image);

/* `literal` must live as long as the image. */
int fs_image_add_literal(struct fs_image *image, const char *literal);

/* Add a number. segments[n_segments - 1].number may be changed until the image is read. */
int fs_image_add_number(struct fs_image *image, uint64_t number);

int fs_image_add_zeros(struct fs_image *image, uint64_t n_bytes);

/* Add bytes of one of the model's files. */
int fs_image_add_source(struct fs_image *image, const struct gguf_source *source, uint64_t offset,
                        uint64_t n_bytes);

/* Add the tensor's data as stored. Its type must be known. */
int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor);

/*
 * Add the tensor's data as little-endian data of `type`: its own type, dequant_modern() of it, F32
 * or a type with an encoder. Of the last two kinds, the tensor must have a decoder and rows of
 * whole blocks of `type`.
 */
int fs_image_add_exported(struct fs_image *image, const struct gguf_tensor *tensor,
                          const struct dequant_type *type);

/* Get the size of these data in bytes. Returns 0, or -EOVERFLOW beyond 2^64. */
int fs_exported_size(const struct gguf_tensor *tensor, const struct dequant_type *type,
                     uint64_t *size_bytes);

/*
 * Add the tensor's elements in row-major order: the last dimension of `shape` is the fastest. Its
 * type must have a decoder. If the tensor is stored in this format, the segment has its bytes.
 */
int fs_image_add_elements(struct fs_image *image, const struct gguf_tensor *tensor,
                          enum fs_format format);

/*
 * Add elements in another order, see fs/tree/arranged.h. The arrangement is copied, its tensors are
 * the model's. Also returns -EINVAL if an element lies outside its tensor.
 */
int fs_image_add_arranged(struct fs_image *image, const struct fs_arrangement *arrangement,
                          enum fs_format format);

/* Add the importances of fs_importance_read(), for which the halves must fit each other. */
int fs_image_add_importance(struct fs_image *image, const struct gguf_tensor *sums,
                            const struct gguf_tensor *counts);

/* Get the size of the elements in bytes. Returns 0, or -EOVERFLOW beyond 2^64. */
int fs_elements_size(const struct gguf_tensor *tensor, enum fs_format format, uint64_t *size_bytes);

/* Add a text: see fs_text_make(), whose errors this also returns. */
int fs_image_add_text(struct fs_image *image, fs_text_writer *write, const struct fs_tree *tree,
                      const void *subject, const struct fs_interrupt *interrupt);

/* Add bytes from malloc(), which become the image's, also if this fails. */
int fs_image_add_made(struct fs_image *image, char *bytes, uint64_t n_bytes);

/* Add the lines of SHA256SUMS. `checksums` becomes the image's, also if this fails. */
int fs_image_add_checksums(struct fs_image *image, struct fs_checksums *checksums);

/*
 * Return true if the image is worth keeping while nobody has the file open: it has checksums of
 * files that do not grow, or a long text, and takes less than a hundredth of the memory of that
 * text.
 */
bool fs_image_is_worth_keeping(const struct fs_image *image);

/*
 * Return true if reads compute the contents and may take minutes: they should be interruptible, and
 * nothing should be read that nobody asked for.
 */
bool fs_image_is_slow(const struct fs_image *image);

/*
 * Return true if the image consists of consecutive bytes of one of the model's files, and get that
 * file and the offset of the first byte there.
 */
bool fs_image_is_of_source(const struct fs_image *image, const struct gguf_source **source,
                           uint64_t *offset);

/*
 * Check the model's first file, because every file of the tree depends on its header, and the files
 * whose bytes the image holds. Returns 0, or -ESTALE like gguf_source_check().
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

#endif
