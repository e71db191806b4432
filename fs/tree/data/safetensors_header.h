/* The header of a safetensors file: https://github.com/huggingface/safetensors#format */
#pragma once

#include "fs/tree/core/image.h"
#include "fs/tree/core/text.h"

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
 * Get entry `index` of a file about `subject`. If `dtype` is NULL, the file lacks this entry but
 * may have later ones. Returns 1, 0 after the last, or a negative errno.
 */
typedef int fs_safetensors_list(const struct fs_tree *tree, const void *subject, uint64_t index,
                                struct fs_safetensor *entry);

/*
 * Write a header: the JSON, with data that follow one another in the order of the list. The sink
 * fails with the error of the list, or with -EOVERFLOW if the data are too large.
 */
void fs_safetensors_write(fs_safetensors_list *list, const struct fs_tree *tree,
                          const void *subject, struct fs_sink *sink);

/*
 * Start a safetensors file: add the size of the header, and the header that `write` writes, padded
 * with blanks. `image` must be empty. Returns as fs_image_add_text(), or -EFBIG if the header is
 * too long.
 */
int fs_safetensors_add_header(struct fs_image *image, fs_text_writer *write,
                              const struct fs_tree *tree, const void *subject,
                              const struct fs_interrupt *interrupt);
