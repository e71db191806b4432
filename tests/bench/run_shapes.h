/*
 * The shapes of models: their tensors and the keys of their architecture. The models are made for
 * measuring the speed of a runner, so all weights are random.
 */
#pragma once

#include "tests/writer/gguf_writer.h"
#include "dequant/types.h"

#include <stddef.h>
#include <stdint.h>

/* The types of a file, and the number that general.file_type has for it (llama.cpp's llama_ftype).
 */
struct sample_mix {
    const char *name;
    const char *matrix;
    const char *important; /* attn_v and ffn_down of every second layer */
    const char *output;
    const char *experts;
    uint32_t file_type;
};

struct sample_sizes {
    uint32_t layers;
    uint32_t width;
    uint32_t inner; /* the width of a feed-forward network, or of mamba2's state space */
    uint32_t heads, kv_heads, head_width;
    uint32_t experts, experts_used;
    uint32_t state;
    uint32_t vocabulary;
};

struct sample_tensor {
    char name[64];
    uint32_t n_dims;
    uint64_t ne[3];
    const struct dequant_type *type;
    float mean, std;
};

struct sample_model {
    const struct sample_shape *shape;
    const struct sample_mix *mix;
    struct sample_sizes sizes;
    struct sample_tensor *tensors;
    size_t n_tensors;
};

struct sample_shape {
    const char *name; /* also the architecture's */
    struct sample_sizes sizes;
    const char *mix; /* the default */
    void (*add_keys)(struct gguf_writer *w, const struct sample_model *model);
    void (*add_layer)(struct sample_model *model, uint32_t layer);
};

/* Return the row of that name, or NULL. */
const struct sample_shape *sample_shape_by_name(const char *name);
const struct sample_mix *sample_mix_by_name(const char *name);

/* Row `index`, or NULL after the last one. */
const struct sample_shape *sample_shape_at(size_t index);
const struct sample_mix *sample_mix_at(size_t index);

/*
 * List the tensors of model->shape in model->sizes with the types of model->mix. The caller frees
 * model->tensors. Returns 0 or -ENOMEM.
 */
int sample_model_list(struct sample_model *model);

/* Add all keys except the tokenizer's. */
void sample_model_add_keys(struct gguf_writer *w, const struct sample_model *model);
