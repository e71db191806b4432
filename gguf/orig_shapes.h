/*
 * Shapes that a tensor had before it was stored: ggml computes with at most four dimensions and
 * quantizes rows of a multiple of the block size, so converters of image and video models store
 * some tensors reshaped and keep the shape in a key "comfy.gguf.orig_shape.<tensor>", an array of
 * integers with the slowest dimension first. (ComfyUI-GGUF, tools/convert.py and loader.py:
 * https://github.com/city96/ComfyUI-GGUF)
 */
#pragma once

#include "gguf/model.h"

struct gguf_shape {
    uint32_t n_dims;              /* 0: the tensor lacks the key */
    uint64_t dims[GGUF_MAX_DIMS]; /* the slowest first, as NumPy prints a shape */
};

/*
 * Find the original shapes of a model's tensors. *shapes gets an entry per tensor, to be freed with
 * free(), or NULL if no tensor has one. A shape that is not an array of 1 to GGUF_MAX_DIMS
 * integers, or that has another number of elements than the tensor, is ignored with a warning in
 * `report`. Returns 0 or -ENOMEM.
 */
int gguf_find_orig_shapes(const struct gguf_model *model, struct gguf_shape **shapes,
                          struct gguf_report *report);
