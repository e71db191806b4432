#include "tests/unit/runner/rwkv_models.h"

#include "tests/unit/gguf/model_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    V = RWKV_N_VOCAB,
    E = RWKV_N_EMBD,
    H = RWKV_N_EMBD / RWKV_HEAD_SIZE,
    S = RWKV_HEAD_SIZE,
    FF = 96,
    RANK = 12,
    F32_TYPE = 0,
    NAME_BYTES = 64,
};

/* Bit sets of models. */
enum {
    V4 = 1 << RWKV_4,
    V51 = 1 << RWKV_5_1,
    V52 = 1 << RWKV_5_2,
    V6 = 1 << RWKV_6,
    V7 = 1 << RWKV_7,
    Q6 = 1 << RWKV_6_QWEN2,
    Q7 = 1 << RWKV_7_QWEN2,
    V5 = V51 | V52,
    BEFORE_6 = V4 | V5,
    ALL_6 = V6 | Q6,
    ALL_7 = V7 | Q7,
    OURS = BEFORE_6 | V6 | V7, /* models with layer norms and channel mix */
    QWEN = Q6 | Q7,
    ALL = OURS | QWEN,
};

static const struct part {
    const char *name;
    unsigned models;
    uint64_t ne[4];
    float least, most; /* range of a vector's elements; matrices have both signs and do not lengthen
                          vectors */
} ends[] = {
    {"token_embd.weight", ALL, {E, V}, 0, 0},
    {"token_embd_norm.weight", OURS, {E}, 0.9f, 1.1f},
    {"token_embd_norm.bias", OURS, {E}, -0.1f, 0.1f},
    {"output_norm.weight", ALL, {E}, 0.9f, 1.1f},
    {"output_norm.bias", OURS, {E}, -0.1f, 0.1f},
    {"output.weight", ALL, {E, V}, 0, 0},
};

/* Tensors of each layer, after "blk.N.", or after "blocks.N." if the name is one of rwkv.cpp's. */
static const struct part layers[] = {
    {"attn_norm.weight", ALL, {E}, 0.9f, 1.1f},
    {"attn_norm.bias", OURS, {E}, -0.1f, 0.1f},
    {"time_mix_receptance.weight", ALL, {E, E}, 0, 0},
    {"time_mix_receptance.bias", Q6, {E}, -0.2f, 0.2f},
    {"time_mix_key.weight", ALL - Q6, {E, E}, 0, 0},
    {"time_mix_value.weight", ALL - Q6, {E, E}, 0, 0},
    {"time_mix_key.weight", Q6, {E, E / 2}, 0, 0},
    {"time_mix_key.bias", Q6, {E / 2}, -0.2f, 0.2f},
    {"time_mix_value.weight", Q6, {E, E / 2}, 0, 0},
    {"time_mix_value.bias", Q6, {E / 2}, -0.2f, 0.2f},
    {"time_mix_gate.weight", V52 | ALL_6, {E, E}, 0, 0},
    {"time_mix_output.weight", ALL, {E, E}, 0, 0},
    {"att.time_mix_k", BEFORE_6, {E}, 0, 1},
    {"att.time_mix_v", BEFORE_6, {E}, 0, 1},
    {"att.time_mix_r", BEFORE_6, {E}, 0, 1},
    {"att.time_mix_g", V52, {E}, 0, 1},
    {"att.time_decay", V4, {E}, -3, -0.01f},
    {"att.time_first", V4, {E}, -1, 1},
    {"att.time_decay", V51, {1, 1, H}, 0.3f, 1},
    {"att.time_first", V51, {1, 1, H}, 0, 2},
    {"att.time_decay", V52, {1, S, H}, 0.3f, 1},
    {"att.time_faaaa", V52, {1, S, H}, -1, 1},
    {"time_mix_ln.weight", V5 | V6 | ALL_7, {E}, 0.9f, 1.1f},
    {"time_mix_ln.bias", V5 | V6 | ALL_7, {E}, -0.1f, 0.1f},
    {"time_mix_lerp_x.weight", ALL_6, {E}, 0, 1},
    {"time_mix_lerp_fused.weight", ALL_6, {E, 1, 1, 5}, 0, 1},
    {"time_mix_w1.weight", ALL_6, {E, RANK * 5}, 0, 0},
    {"time_mix_w2.weight", ALL_6, {RANK, E, 5}, 0, 0},
    {"time_mix_decay.weight", ALL_6, {E}, -5, 1},
    {"time_mix_decay_w1.weight", ALL_6, {E, RANK}, 0, 0},
    {"time_mix_decay_w2.weight", ALL_6, {RANK, E}, 0, 0},
    {"time_mix_first.weight", V6, {S, H}, -1, 1},
    {"time_mix_lerp_fused.weight", ALL_7, {E, 1, 1, 6}, 0, 1},
    {"time_mix_w0.weight", ALL_7, {E}, -3, 1},
    {"time_mix_w1.weight", ALL_7, {E, RANK}, 0, 0},
    {"time_mix_w2.weight", ALL_7, {RANK, E}, 0, 0},
    {"time_mix_a0.weight", ALL_7, {E}, -1, 1},
    {"time_mix_a1.weight", ALL_7, {E, RANK}, 0, 0},
    {"time_mix_a2.weight", ALL_7, {RANK, E}, 0, 0},
    {"time_mix_v0.weight", ALL_7, {E}, -1, 1},
    {"time_mix_v1.weight", ALL_7, {E, RANK}, 0, 0},
    {"time_mix_v2.weight", ALL_7, {RANK, E}, 0, 0},
    {"time_mix_g1.weight", ALL_7, {E, RANK}, 0, 0},
    {"time_mix_g2.weight", ALL_7, {RANK, E}, 0, 0},
    {"time_mix_k_k.weight", ALL_7, {E}, 0.6f, 1.1f},
    {"time_mix_k_a.weight", ALL_7, {E}, 0.6f, 1.1f},
    {"time_mix_r_k.weight", ALL_7, {E}, -0.3f, 0.3f},
    {"attn_norm_2.weight", OURS, {E}, 0.9f, 1.1f},
    {"attn_norm_2.bias", OURS, {E}, -0.1f, 0.1f},
    {"ffn.time_mix_k", BEFORE_6, {E}, 0, 1},
    {"ffn.time_mix_r", BEFORE_6, {E}, 0, 1},
    {"channel_mix_lerp_k.weight", V6 | V7, {E}, 0, 1},
    {"channel_mix_lerp_r.weight", V6, {E}, 0, 1},
    {"channel_mix_receptance.weight", BEFORE_6 | V6, {E, E}, 0, 0},
    {"channel_mix_key.weight", OURS, {E, FF}, 0, 0},
    {"channel_mix_value.weight", OURS, {FF, E}, 0, 0},
    {"ffn_norm.weight", QWEN, {E}, 0.9f, 1.1f},
    {"ffn_gate.weight", QWEN, {E, FF}, 0, 0},
    {"ffn_up.weight", QWEN, {E, FF}, 0, 0},
    {"ffn_down.weight", QWEN, {FF, E}, 0, 0},
};

static void full_name(const struct part *part, unsigned layer, char name[NAME_BYTES])
{
    const bool is_own = strncmp(part->name, "att.", 4) == 0 || strncmp(part->name, "ffn.", 4) == 0;

    snprintf(name, NAME_BYTES, "%s.%u.%s", is_own ? "blocks" : "blk", layer, part->name);
}

static void write_part(struct gguf_writer *w, const struct part *part, const char *name,
                       uint64_t *state)
{
    const bool is_matrix = part->least == part->most;
    const float most = is_matrix ? sqrtf(3 / (float)part->ne[0]) : part->most;
    const float least = is_matrix ? -most : part->least;
    unsigned n_dims = 0;
    uint64_t n = 1;
    float *values;

    while (n_dims < COUNT(part->ne) && part->ne[n_dims] > 0)
        n *= part->ne[n_dims++];
    values = malloc(n * sizeof *values);
    for (uint64_t i = 0; values && i < n; i++)
        values[i] =
            least + (most - least) * (float)(model_file_random(state) >> 40) / (float)(1 << 24);
    gguf_writer_add_tensor(w, name, strlen(name), n_dims, part->ne, F32_TYPE, values,
                           n * sizeof *values);
    free(values);
}

/*
 * Return general.architecture of the model, or NULL if the model exists only as rwkv.cpp files.
 */
static const char *architecture_of(enum rwkv_model model)
{
    static const char *const names[RWKV_MODELS] = {
        [RWKV_6] = "rwkv6",
        [RWKV_7] = "rwkv7",
        [RWKV_6_QWEN2] = "rwkv6qwen2",
        [RWKV_7_QWEN2] = "arwkv7",
    };

    return names[model];
}

static void add_u32(struct gguf_writer *w, const char *architecture, const char *key,
                    uint32_t value)
{
    char whole[NAME_BYTES];

    snprintf(whole, sizeof whole, "%s.%s", architecture, key);
    gguf_writer_add_u32(w, whole, value);
}

static void write_keys(struct gguf_writer *w, enum rwkv_model model, uint32_t head_size,
                       uint32_t version)
{
    const bool is_ours = OURS >> model & 1;
    const char *architecture = architecture_of(model);
    char key[NAME_BYTES];

    if (!architecture)
        architecture = "rwkv";
    gguf_writer_add_string(w, "general.architecture", architecture);
    gguf_writer_add_string(w, "tokenizer.ggml.model", "no_vocab");
    add_u32(w, architecture, "vocab_size", V);
    add_u32(w, architecture, "context_length", 1024);
    add_u32(w, architecture, "embedding_length", E);
    add_u32(w, architecture, "block_count", RWKV_N_LAYER);
    add_u32(w, architecture, "feed_forward_length", FF);
    add_u32(w, architecture, "attention.head_count", 0);
    add_u32(w, architecture, "architecture_version", version);
    add_u32(w, architecture, "wkv.head_size", head_size);
    /* Keys that llama.cpp requires. */
    add_u32(w, architecture, "time_mix_extra_dim", RANK);
    add_u32(w, architecture, "time_decay_extra_dim", RANK);
    add_u32(w, architecture, "attention.decay_lora_rank", RANK);
    add_u32(w, architecture, "attention.iclr_lora_rank", RANK);
    add_u32(w, architecture, "attention.value_residual_mix_lora_rank", RANK);
    add_u32(w, architecture, "attention.gate_lora_rank", RANK);
    add_u32(w, architecture, "token_shift_count", is_ours ? 2 : 1);
    if (model == RWKV_6)
        add_u32(w, architecture, "rescale_every_n_layers", 1);
    if (model == RWKV_6_QWEN2)
        add_u32(w, architecture, "attention.head_count_kv", H / 2);
    snprintf(key, sizeof key, "%s.attention.layer_norm%s_epsilon", architecture,
             is_ours ? "" : "_rms");
    gguf_writer_add_f32(w, key, 1e-5f);
}

struct gguf_writer *rwkv_model_write(enum rwkv_model model, uint32_t head_size, uint32_t version)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    uint64_t state = 1 + (uint64_t)model;
    char name[NAME_BYTES];

    write_keys(w, model, head_size, version);
    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends[i].models >> model & 1)
            write_part(w, &ends[i], ends[i].name, &state);
    for (unsigned layer = 0; layer < RWKV_N_LAYER; layer++)
        for (size_t i = 0; i < COUNT(layers); i++)
            if (layers[i].models >> model & 1) {
                full_name(&layers[i], layer, name);
                write_part(w, &layers[i], name, &state);
            }
    return w;
}

void rwkv_model_each(enum rwkv_model model, void (*each)(void *user, const char *name), void *user)
{
    char name[NAME_BYTES];

    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends[i].models >> model & 1)
            each(user, ends[i].name);
    for (size_t i = 0; i < COUNT(layers); i++)
        if (layers[i].models >> model & 1) {
            full_name(&layers[i], RWKV_N_LAYER - 1, name);
            each(user, name);
        }
}
