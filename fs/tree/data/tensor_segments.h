/* Tensor data as segments of images. */
#pragma once

#include "fs/tree/data/arranged.h"
#include "gguf/elements.h"
#include "fs/tree/core/image.h"

/* Add the tensor's data as stored. Its type must be known. */
int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor);

/*
 * Add the tensor's elements as data of a type, see gguf/elements.h. If the file stores them
 * in this form, its bytes are the segment.
 */
int fs_image_add_elements(struct fs_image *image, const struct gguf_tensor *tensor,
                          const struct dequant_type *type);

/*
 * Add elements in another order as numbers of F32, F16 or BF16, see fs/tree/data/arranged.h. The
 * arrangement is copied, its tensors are the model's. Also returns -EINVAL if an element lies
 * outside its tensor.
 */
int fs_image_add_arranged(struct fs_image *image, const struct fs_arrangement *arrangement,
                          const struct dequant_type *type);
