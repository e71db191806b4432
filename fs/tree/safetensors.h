/*
 * safetensors files: the header of any, and model.safetensors, which has all tensors under their
 * GGUF names. The format: https://github.com/huggingface/safetensors#format
 */
#ifndef GGUFS_FS_SAFETENSORS_H
#define GGUFS_FS_SAFETENSORS_H

#include "fs/tree/image.h"
#include "fs/tree/interrupt.h"
#include "fs/tree/text.h"
#include "gguf/model.h"

#include <stdbool.h>
#include <stdint.h>

/* The number type of floating-point tensors in safetensors files, as the user wants it. */
enum fs_dtype {
    FS_DTYPE_STORED, /* F32, F16 and F64 as they are, BF16 for all others */
    FS_DTYPE_F32,
    FS_DTYPE_F16,
    FS_DTYPE_BF16,
};

/* An entry of a header. */
struct fs_safetensor {
    struct gguf_string name; /* UTF-8 */
    char made_name[256];     /* room for a name that is in no file */
    const char *dtype;       /* "BF16" */
    uint32_t n_dims;
    uint64_t shape[GGUF_MAX_DIMS]; /* the slowest dimension first */
    uint64_t size_bytes;
};

/* No reader accepts a longer header. */
#define FS_SAFETENSORS_MAX_HEADER_BYTES 100000000u

/*
 * Return the format of a tensor's numbers in safetensors files. By default, float64 and integers
 * that BF16 would round give FS_F32, which matters only where they are not kept, as in hf/.
 */
enum fs_format fs_dtype_of(const struct fs_tree *tree, const struct gguf_tensor *tensor);

/*
 * Get entry `index` of a file about `subject`. A `dtype` of NULL means that the file has no such
 * entry, but may have others after it. Returns 1, 0 after the last, or a negative errno.
 */
typedef int fs_safetensors_list(const struct fs_tree *tree, const void *subject, uint64_t index,
                                struct fs_safetensor *entry);

/*
 * The fs_text_writer of a header: the JSON, with data that follow one another in the order of the
 * list. Returns -EOVERFLOW if they are too large.
 */
int fs_safetensors_write(fs_safetensors_list *list, const struct fs_tree *tree, const void *subject,
                         struct fs_place *place, struct fs_sink *sink);

/*
 * Start a safetensors file: add the size of the header, and the header that `write` writes, padded
 * with blanks. `image` must be empty. Returns as fs_image_add_text(), or -EFBIG if the header is
 * too long.
 */
int fs_safetensors_add_header(struct fs_image *image, fs_text_writer *write,
                              const struct fs_tree *tree, const void *subject,
                              const struct fs_interrupt *interrupt);

/* ---- model.safetensors ---- */

/*
 * Return the reason why the model cannot be written as a safetensors file, in a few words, or NULL.
 */
const char *fs_safetensors_obstacle(const struct fs_tree *tree);

/* Return true if there is no such reason. Used by the table of views. */
bool fs_safetensors_applies(const struct fs_tree *tree, const void *subject);

int fs_safetensors_build(const struct fs_tree *tree, const void *subject,
                         const struct fs_interrupt *interrupt, struct fs_image *image);

#endif
