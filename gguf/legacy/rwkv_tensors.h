/*
 * Tensors of rwkv.cpp files in the form of llama.cpp's GGUF files. The values and their order are
 * the same: rwkv.cpp's converter transposes what llama.cpp's does. Names and shapes differ, and a
 * few tensors are joined or stored twice. Sources: convert_pytorch_to_ggml.py of rwkv.cpp;
 * conversion/rwkv.py, src/models/rwkv6.cpp and rwkv7.cpp of llama.cpp, which runs RWKV 6 and 7
 * only.
 */
#pragma once

#include "gguf/model.h"

/* One tensor of the GGUF file, or a part of one. */
struct gguf_rwkv_rule {
    const char *old_name; /* a pattern, see struct gguf_name_rule */
    const char *name;     /* in GGUF; NULL: the GGUF file leaves the tensor out */
    enum {
        GGUF_SHAPE_STORED,
        GGUF_SHAPE_FLAT,    /* one dimension */
        GGUF_SHAPE_COMPACT, /* dimensions of 1 left out */
        GGUF_SHAPE_STACKED, /* {ne[0], 1, 1, the rest}: vectors that llama.cpp adds to one input */
    } shape;
    uint32_t part; /* its place among the tensors that are joined */
};

/* Tables up to a rule without an old name. All rules that match a tensor apply to it. */
extern const struct gguf_rwkv_rule gguf_rwkv6_rules[], gguf_rwkv7_rules[];

/*
 * Set model->converted by these rules; tensors without a rule keep shape and GGUF name. The model
 * must be complete: gguf_old_tensors_name() has checked it. If tensors to be joined have different
 * types or shapes, which no converter writes, nothing is converted. Returns 0, or a negative errno
 * with the reason in `report`.
 */
int gguf_rwkv_convert(struct gguf_model *model, const struct gguf_rwkv_rule *rules,
                      uint32_t n_layers, struct gguf_report *report);
