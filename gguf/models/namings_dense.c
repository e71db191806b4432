/* Namings of dense models, and of mixtral. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename hunyuan_names[] = {
    NAME("blk.%.attn_q_norm", "model.layers.%.self_attn.query_layernorm"),
    NAME("blk.%.attn_k_norm", "model.layers.%.self_attn.key_layernorm"),
    END_OF_NAMES,
};

/* Norms that follow attention and feed-forward. */
static const struct gguf_rename post_norm_names[] = {
    NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    NAME("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm"),
    END_OF_NAMES,
};

/* The converter reorders rows of the weights alone. */
static const struct gguf_rename olmo_names[] = {
    NAME("blk.%.attn_q.bias", "model.layers.%.self_attn.q_proj.bias"),
    NAME("blk.%.attn_k.bias", "model.layers.%.self_attn.k_proj.bias"),
    END_OF_NAMES,
};

static const struct gguf_rename glm_names[] = {
    NAME("blk.%.ffn_up", "model.layers.%.mlp.gate_up_proj"),
    NAME("blk.%.post_attention_norm", "model.layers.%.post_self_attn_layernorm"),
    NAME("blk.%.post_ffw_norm", "model.layers.%.post_mlp_layernorm"),
    END_OF_NAMES,
};

static const struct gguf_rename halves_names[] = {
    ORDERED("blk.%.attn_q", "model.layers.%.self_attn.q_proj", GGUF_HALVES_Q),
    ORDERED("blk.%.attn_k", "model.layers.%.self_attn.k_proj", GGUF_HALVES_K),
    END_OF_NAMES,
};

static const struct gguf_rename phi3_names[] = {
    NAME("blk.%.attn_qkv", "model.layers.%.self_attn.qkv_proj"),
    NAME("blk.%.attn_output", "model.layers.%.self_attn.o_proj"),
    NAME("blk.%.ffn_up", "model.layers.%.mlp.gate_up_proj"),
    END_OF_NAMES,
};

static const struct gguf_rename apertus_names[] = {
    NAME("blk.%.attn_norm", "model.layers.%.attention_layernorm"),
    NAME("blk.%.ffn_norm", "model.layers.%.feedforward_layernorm"),
    ELEMENT("xielu.alpha_n", "model.layers.%.mlp.act_fn.alpha_n"),
    ELEMENT("xielu.alpha_p", "model.layers.%.mlp.act_fn.alpha_p"),
    SCALAR("xielu.beta", "model.layers.%.mlp.act_fn.beta"),
    SCALAR("xielu.eps", "model.layers.%.mlp.act_fn.eps"),
    END_OF_NAMES,
};

static const struct gguf_rename bitnet_names[] = {
    NAME("blk.%.attn_sub_norm", "model.layers.%.self_attn.attn_sub_norm"),
    NAME("blk.%.ffn_sub_norm", "model.layers.%.mlp.ffn_sub_norm"),
    END_OF_NAMES,
};

static const struct gguf_rename nemotron_names[] = {
    PLUS_ONE("output_norm.weight", "model.norm.weight"),
    PLUS_ONE("blk.%.attn_norm.weight", "model.layers.%.input_layernorm.weight"),
    PLUS_ONE("blk.%.ffn_norm.weight", "model.layers.%.post_attention_layernorm.weight"),
    END_OF_NAMES,
};

static const struct gguf_rename starcoder2_names[] = {
    NAME("blk.%.ffn_up", "model.layers.%.mlp.c_fc"),
    NAME("blk.%.ffn_down", "model.layers.%.mlp.c_proj"),
    END_OF_NAMES,
};

static const struct gguf_rename stablelm_names[] = {
    NAME("blk.%.attn_q_norm.weight", "model.layers.%.self_attn.q_layernorm.norms.#.weight"),
    NAME("blk.%.attn_k_norm.weight", "model.layers.%.self_attn.k_layernorm.norms.#.weight"),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_mixtral = {{gguf_names_rotated, gguf_names_embedding,
                                                 gguf_names_norm, gguf_names_attention,
                                                 gguf_names_block_sparse}};
const struct gguf_naming gguf_naming_llama = {{gguf_names_rotated, DENSE_RULES}};
const struct gguf_naming gguf_naming_llama_plain = {{DENSE_RULES}};
const struct gguf_naming gguf_naming_olmo = {{olmo_names, gguf_names_rotated, DENSE_RULES}};
const struct gguf_naming gguf_naming_olmo3 = {{post_norm_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_apertus = {{apertus_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_seed_oss = {
    {ONE_NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
     DENSE_RULES}};
const struct gguf_naming gguf_naming_hunyuan_v1_dense = {{hunyuan_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_glm = {{glm_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_glm4 = {{glm_names, halves_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_phi3 = {
    {phi3_names, gguf_names_embedding, gguf_names_norm, gguf_names_mlp}};
const struct gguf_naming gguf_naming_bitnet = {{bitnet_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_nemotron = {{nemotron_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_starcoder2 = {{starcoder2_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_stablelm = {{stablelm_names, DENSE_RULES}};
