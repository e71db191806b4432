#include "tests/bench/run_shapes.h"

#include "tests/writer/random_weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PARTS = 24, /* tensors of a layer */
    N_ENDS = 3,      /* tensors that belong to no layer */
    N_CONTEXT = 4096,
    CONVOLUTION = 4, /* tokens that mamba2's convolution sees */
};

#define ALL(type, file_type)                                                                       \
    {                                                                                              \
        type, type, type, type, type, file_type                                                    \
    }

static const struct sample_mix mixes[] = {
    {"Q4_K_M", "Q4_K", "Q6_K", "Q6_K", "Q4_K", 15},
    {"MXFP4", "Q8_0", "Q8_0", "Q8_0", "MXFP4", 38},
    ALL("Q4_0", 2),
    ALL("Q4_1", 3),
    ALL("Q5_0", 8),
    ALL("Q5_1", 9),
    ALL("Q8_0", 7),
    ALL("Q2_K", 10),
    ALL("Q3_K", 11),
    ALL("Q4_K", 14),
    ALL("Q5_K", 16),
    ALL("Q6_K", 18),
    ALL("IQ2_S", 28),
    ALL("IQ3_S", 26),
    ALL("IQ4_NL", 25),
    ALL("IQ4_XS", 30),
    ALL("F16", 1),
    ALL("BF16", 32),
};

/* ---- tensors ---- */

static struct sample_tensor *add(struct sample_model *model, const char *name, const char *type,
                                 uint64_t ne0, uint64_t ne1)
{
    struct sample_tensor *tensor = &model->tensors[model->n_tensors++];
    *tensor = (struct sample_tensor){.n_dims = ne1 > 0 ? 2 : 1,
                                     .ne = {ne0, ne1 > 0 ? ne1 : 1, 1},
                                     .type = sample_type(type),
                                     .std = 0.02f};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return tensor;
}

/* Add a tensor of a layer. With ne1 = 0, it has one dimension. */
static struct sample_tensor *add_part(struct sample_model *model, uint32_t layer, const char *name,
                                      const char *type, uint64_t ne0, uint64_t ne1)
{
    char whole[64];
    snprintf(whole, sizeof whole, "blk.%u.%s", layer, name);
    return add(model, whole, type, ne0, ne1);
}

/* Add a vector, or a matrix that is not a factor of products. */
static void add_numbers(struct sample_model *model, uint32_t layer, const char *name, uint64_t ne0,
                        uint64_t ne1, float mean, float std)
{
    struct sample_tensor *tensor = add_part(model, layer, name, "F32", ne0, ne1);
    tensor->mean = mean;
    tensor->std = std;
}

/* Add the factors of a norm. */
static void add_norm(struct sample_model *model, uint32_t layer, const char *name, uint64_t width)
{
    add_numbers(model, layer, name, width, 0, 1, 0.1f);
}

static const char *important(const struct sample_model *model, uint32_t layer)
{
    return layer % 2 == 0 ? model->mix->important : model->mix->matrix;
}

static void add_attention(struct sample_model *model, uint32_t layer)
{
    const struct sample_sizes *sizes = &model->sizes;
    const uint64_t width = sizes->width;
    const uint64_t queries = (uint64_t)sizes->heads * sizes->head_width;
    const uint64_t keys = (uint64_t)sizes->kv_heads * sizes->head_width;
    const char *type = model->mix->matrix;

    add_norm(model, layer, "attn_norm.weight", width);
    add_part(model, layer, "attn_q.weight", type, width, queries);
    add_part(model, layer, "attn_k.weight", type, width, keys);
    add_part(model, layer, "attn_v.weight", important(model, layer), width, keys);
    add_part(model, layer, "attn_output.weight", type, queries, width);
}

static void add_experts(struct sample_model *model, uint32_t layer)
{
    static const char *const inward[] = {"ffn_gate_exps.weight", "ffn_up_exps.weight"};
    const struct sample_sizes *sizes = &model->sizes;
    struct sample_tensor *tensor;

    add_numbers(model, layer, "ffn_gate_inp.weight", sizes->width, sizes->experts, 0, 0.05f);
    for (int i = 0; i < 2; i++) {
        tensor = add_part(model, layer, inward[i], model->mix->experts, sizes->width, sizes->inner);
        tensor->n_dims = 3;
        tensor->ne[2] = sizes->experts;
    }
    tensor = add_part(model, layer, "ffn_down_exps.weight", model->mix->experts, sizes->inner,
                      sizes->width);
    tensor->n_dims = 3;
    tensor->ne[2] = sizes->experts;
}

static void add_llama_layer(struct sample_model *model, uint32_t layer)
{
    const struct sample_sizes *sizes = &model->sizes;
    const char *type = model->mix->matrix;

    add_attention(model, layer);
    add_norm(model, layer, "ffn_norm.weight", sizes->width);
    add_part(model, layer, "ffn_gate.weight", type, sizes->width, sizes->inner);
    add_part(model, layer, "ffn_up.weight", type, sizes->width, sizes->inner);
    add_part(model, layer, "ffn_down.weight", important(model, layer), sizes->inner, sizes->width);
}

static void add_qwen3moe_layer(struct sample_model *model, uint32_t layer)
{
    add_attention(model, layer);
    add_norm(model, layer, "attn_q_norm.weight", model->sizes.head_width);
    add_norm(model, layer, "attn_k_norm.weight", model->sizes.head_width);
    add_norm(model, layer, "ffn_norm.weight", model->sizes.width);
    add_experts(model, layer);
}

static void add_gpt_oss_layer(struct sample_model *model, uint32_t layer)
{
    const struct sample_sizes *sizes = &model->sizes;
    const uint64_t keys = (uint64_t)sizes->kv_heads * sizes->head_width;

    add_attention(model, layer);
    add_numbers(model, layer, "attn_q.bias", (uint64_t)sizes->heads * sizes->head_width, 0, 0,
                0.02f);
    add_numbers(model, layer, "attn_k.bias", keys, 0, 0, 0.02f);
    add_numbers(model, layer, "attn_v.bias", keys, 0, 0, 0.02f);
    add_numbers(model, layer, "attn_output.bias", sizes->width, 0, 0, 0.02f);
    add_numbers(model, layer, "attn_sinks.weight", sizes->heads, 0, 0, 1);
    add_norm(model, layer, "post_attention_norm.weight", sizes->width);
    add_experts(model, layer);
    add_numbers(model, layer, "ffn_gate_inp.bias", sizes->experts, 0, 0, 0.02f);
    add_numbers(model, layer, "ffn_gate_exps.bias", sizes->inner, sizes->experts, 0, 0.02f);
    add_numbers(model, layer, "ffn_up_exps.bias", sizes->inner, sizes->experts, 0, 0.02f);
    add_numbers(model, layer, "ffn_down_exps.bias", sizes->width, sizes->experts, 0, 0.02f);
}

static void add_mamba2_layer(struct sample_model *model, uint32_t layer)
{
    const struct sample_sizes *sizes = &model->sizes;
    const uint64_t convolved = sizes->inner + 2 * (uint64_t)sizes->state; /* one group */

    add_norm(model, layer, "attn_norm.weight", sizes->width);
    add_part(model, layer, "ssm_in.weight", model->mix->matrix, sizes->width,
             sizes->inner + convolved + sizes->heads);
    add_numbers(model, layer, "ssm_conv1d.weight", CONVOLUTION, convolved, 0, 0.3f);
    add_numbers(model, layer, "ssm_conv1d.bias", convolved, 0, 0, 0.02f);
    add_numbers(model, layer, "ssm_dt.bias", sizes->heads, 0, -4, 0.5f);
    add_numbers(model, layer, "ssm_a", 1, sizes->heads, -4, 0.5f);
    add_numbers(model, layer, "ssm_d", 1, sizes->heads, 1, 0.1f);
    add_numbers(model, layer, "ssm_norm.weight", sizes->inner, 1, 1, 0.1f);
    add_part(model, layer, "ssm_out.weight", model->mix->matrix, sizes->inner, sizes->width);
}

int sample_model_list(struct sample_model *model)
{
    const struct sample_sizes *sizes = &model->sizes;

    model->tensors = calloc((size_t)sizes->layers * MOST_PARTS + N_ENDS, sizeof *model->tensors);
    if (!model->tensors)
        return -ENOMEM;
    add(model, "token_embd.weight", model->mix->matrix, sizes->width, sizes->vocabulary);
    for (uint32_t layer = 0; layer < sizes->layers; layer++)
        model->shape->add_layer(model, layer);
    add(model, "output_norm.weight", "F32", sizes->width, 0)->mean = 1;
    add(model, "output.weight", model->mix->output, sizes->width, sizes->vocabulary);
    return 0;
}

/* ---- metadata ---- */

static void add_u32(struct gguf_writer *w, const struct sample_model *model, const char *key,
                    uint32_t value)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", model->shape->name, key);
    gguf_writer_add_u32(w, whole, value);
}

static void add_f32(struct gguf_writer *w, const struct sample_model *model, const char *key,
                    float value)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", model->shape->name, key);
    gguf_writer_add_f32(w, whole, value);
}

static void add_llama_keys(struct gguf_writer *w, const struct sample_model *model)
{
    const struct sample_sizes *sizes = &model->sizes;

    add_u32(w, model, "feed_forward_length", sizes->inner);
    add_u32(w, model, "attention.head_count", sizes->heads);
    add_u32(w, model, "attention.head_count_kv", sizes->kv_heads);
    add_u32(w, model, "attention.key_length", sizes->head_width);
    add_u32(w, model, "attention.value_length", sizes->head_width);
    add_u32(w, model, "rope.dimension_count", sizes->head_width);
    add_f32(w, model, "rope.freq_base", 10000.0f);
}

static void add_experts_keys(struct gguf_writer *w, const struct sample_model *model)
{
    add_llama_keys(w, model);
    add_u32(w, model, "expert_count", model->sizes.experts);
    add_u32(w, model, "expert_used_count", model->sizes.experts_used);
    add_u32(w, model, "expert_feed_forward_length", model->sizes.inner);
}

static void add_gpt_oss_keys(struct gguf_writer *w, const struct sample_model *model)
{
    add_experts_keys(w, model);
    add_u32(w, model, "attention.sliding_window", 128);
    gguf_writer_add_string(w, "gpt-oss.rope.scaling.type", "yarn");
    add_f32(w, model, "rope.scaling.factor", 32.0f);
    add_u32(w, model, "rope.scaling.original_context_length", N_CONTEXT);
}

static void add_mamba2_keys(struct gguf_writer *w, const struct sample_model *model)
{
    add_u32(w, model, "feed_forward_length", 0);
    add_u32(w, model, "attention.head_count", 0);
    add_u32(w, model, "ssm.conv_kernel", CONVOLUTION);
    add_u32(w, model, "ssm.inner_size", model->sizes.inner);
    add_u32(w, model, "ssm.state_size", model->sizes.state);
    add_u32(w, model, "ssm.time_step_rank", model->sizes.heads);
    add_u32(w, model, "ssm.group_count", 1);
}

void sample_model_add_keys(struct gguf_writer *w, const struct sample_model *model)
{
    gguf_writer_add_string(w, "general.architecture", model->shape->name);
    gguf_writer_add_string(w, "general.name", "random weights");
    gguf_writer_add_u32(w, "general.file_type", model->mix->file_type);
    gguf_writer_add_u32(w, "general.quantization_version", 2);
    add_u32(w, model, "context_length", N_CONTEXT);
    add_u32(w, model, "embedding_length", model->sizes.width);
    add_u32(w, model, "block_count", model->sizes.layers);
    add_u32(w, model, "vocab_size", model->sizes.vocabulary);
    add_f32(w, model, "attention.layer_norm_rms_epsilon", 1e-5f);
    model->shape->add_keys(w, model);
}

/* ---- the shapes ---- */

/* The shapes of TinyLlama and Mamba-2 1.3B; the others are smaller than the models of that name. */
static const struct sample_shape shapes[] = {
    {"llama",
     {.layers = 22,
      .width = 2048,
      .inner = 5632,
      .heads = 32,
      .kv_heads = 4,
      .head_width = 64,
      .vocabulary = 32000},
     "Q4_K_M",
     add_llama_keys,
     add_llama_layer},
    {"qwen3moe",
     {.layers = 20,
      .width = 1024,
      .inner = 512,
      .heads = 16,
      .kv_heads = 4,
      .head_width = 128,
      .experts = 64,
      .experts_used = 8,
      .vocabulary = 32000},
     "Q4_K_M",
     add_experts_keys,
     add_qwen3moe_layer},
    {"gpt-oss",
     {.layers = 12,
      .width = 1440,
      .inner = 1440,
      .heads = 32,
      .kv_heads = 8,
      .head_width = 64,
      .experts = 32,
      .experts_used = 4,
      .vocabulary = 32000},
     "MXFP4",
     add_gpt_oss_keys,
     add_gpt_oss_layer},
    {"mamba2",
     {.layers = 48, .width = 2048, .inner = 4096, .heads = 64, .state = 128, .vocabulary = 32000},
     "Q8_0",
     add_mamba2_keys,
     add_mamba2_layer},
};

const struct sample_shape *sample_shape_at(size_t index)
{
    return index < sizeof shapes / sizeof shapes[0] ? &shapes[index] : NULL;
}

const struct sample_mix *sample_mix_at(size_t index)
{
    return index < sizeof mixes / sizeof mixes[0] ? &mixes[index] : NULL;
}

const struct sample_shape *sample_shape_by_name(const char *name)
{
    const struct sample_shape *shape;

    for (size_t i = 0; (shape = sample_shape_at(i)) && strcmp(shape->name, name) != 0; i++)
        ;
    return shape;
}

const struct sample_mix *sample_mix_by_name(const char *name)
{
    const struct sample_mix *mix;

    for (size_t i = 0; (mix = sample_mix_at(i)) && strcmp(mix->name, name) != 0; i++)
        ;
    return mix;
}
