/*
 * Tensors of rwkv.cpp files in the form of llama.cpp's GGUF files. The values and their order are
 * the same: rwkv.cpp's converter transposes what llama.cpp's does. Names and shapes differ, and a
 * few tensors are joined or stored twice. Sources: convert_pytorch_to_ggml.py of rwkv.cpp;
 * conversion/rwkv.py, src/models/rwkv6.cpp and rwkv7.cpp of llama.cpp, which runs RWKV 6 and 7
 * only.
 */
#pragma once

#include "gguf/model.h"

/* A tensor of the GGUF file. All rules that match a tensor apply to it. */
struct gguf_rwkv_rule {
    const char *old_name; /* a pattern */
    const char *name;     /* in GGUF; NULL: the GGUF file leaves the tensor out */
    enum {
        GGUF_SHAPE_STORED,
        GGUF_SHAPE_FLAT,    /* one dimension */
        GGUF_SHAPE_COMPACT, /* dimensions of 1 left out */
        GGUF_SHAPE_STACKED, /* {ne[0], 1, 1, the rest}: vectors that llama.cpp adds to one input */
    } shape;
};

/* Tables for model->rwkv_rules, up to a rule without an old name. */
extern const struct gguf_rwkv_rule gguf_rwkv6_rules[], gguf_rwkv7_rules[];

/*
 * Make the model with the tensors of the GGUF file, which borrows the model. Tensors without a rule
 * keep shape and GGUF name, and so do those to be joined whose types or shapes differ, which no
 * converter writes. Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_rwkv_convert(const struct gguf_model *model, struct gguf_model **converted,
                      struct gguf_report *report);
