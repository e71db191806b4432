/* Checkpoints of models like llama, with one dense feed-forward per layer; and mixtral. */
#include "fs/tree/hf/hf_rows.h"

#include <math.h>

/* ---- llama, mixtral ---- */

static bool has_experts(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "expert_count", 0) > 0;
}

static const struct fs_hf_entry biases[] = {
    HAS("attention_bias", "blk.%.attn_q.bias"),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry optional_head_dim[] = {
    KEY_OR("head_dim", "attention.key_length", ""),
    END_OF_CONFIG,
};

static const struct fs_hf_entry mixtral_config[] = {
    KEY("num_local_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

/* ---- one norm more, other names ---- */

static const struct fs_hf_entry relu_squared[] = {
    JSON("hidden_act", "\"relu2\""),
    END_OF_CONFIG,
};

static const struct fs_hf_entry no_window[] = {
    JSON("use_sliding_window", "false"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry window[] = {
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

/* The key feed_forward_length is of experts, also in a file that has only the shared expert. */
static const struct fs_hf_entry granite_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("intermediate_size", "blk.%.ffn_up.weight", fs_hf_write_rows),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry granite_config[] = {
    KEY_OR("embedding_multiplier", "embedding_scale", "1.0"),
    KEY_OR("residual_multiplier", "residual_scale", "1.0"),
    KEY_OR("attention_multiplier", "attention.scale", "1.0"),
    KEY_OR("logits_scaling", "logit_scale", "1.0"),
    END_OF_CONFIG,
};

/* MiniCPM computes as Granite does, with the usual scale of scores. */
static void write_usual_scale(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    fs_hf_member_ratio(config, entry->name, 1 / sqrt((double)fs_hf_head_dim(config->hf)));
}

static const struct fs_hf_entry minicpm_config[] = {
    KEY("embedding_multiplier", "embedding_scale"),
    KEY("residual_multiplier", "residual_scale"),
    CALL("attention_multiplier", write_usual_scale),
    KEY("logits_scaling", "logit_scale"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry seed_oss_config[] = {
    HAS("attention_bias", "blk.%.attn_q.bias"),
    HAS("attention_out_bias", "blk.%.attn_output.bias"),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule seed_oss_rules[] = {
    TENSOR("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_rule hunyuan_rules[] = {
    TENSOR("blk.%.attn_q_norm", "model.layers.%.self_attn.query_layernorm"),
    TENSOR("blk.%.attn_k_norm", "model.layers.%.self_attn.key_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_entry ernie_config[] = {
    HAS("use_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

/* Norms that follow attention and feed-forward. */
static const struct fs_hf_rule post_norm_rules[] = {
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    TENSOR("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_entry windows_of_four[] = {
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 4),
    END_OF_CONFIG,
};

static bool has_window(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "attention.sliding_window", 0) > 0;
}

static const struct fs_hf_entry rope_by_type[] = {
    CALL("rope", fs_hf_write_rope_by_type),
    END_OF_CONFIG,
};

/* The converter reorders rows of the weights alone. */
static const struct fs_hf_rule olmo_rules[] = {
    TENSOR("blk.%.attn_q.bias", "model.layers.%.self_attn.q_proj.bias"),
    TENSOR("blk.%.attn_k.bias", "model.layers.%.self_attn.k_proj.bias"),
    END_OF_RULES,
};

static const struct fs_hf_entry olmo_config[] = {
    KEY_OR("clip_qkv", "attention.clamp_kqv", "null"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule glm_rules[] = {
    TENSOR("blk.%.ffn_up", "model.layers.%.mlp.gate_up_proj"),
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_self_attn_layernorm"),
    TENSOR("blk.%.post_ffw_norm", "model.layers.%.post_mlp_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_rule phi3_rules[] = {
    TENSOR("blk.%.attn_qkv", "model.layers.%.self_attn.qkv_proj"),
    TENSOR("blk.%.ffn_up", "model.layers.%.mlp.gate_up_proj"),
    END_OF_RULES,
};

static const struct fs_hf_entry phi3_config[] = {
    KEY_OR("original_max_position_embeddings", "rope.scaling.original_context_length", ""),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

static const struct fs_hf_rule apertus_rules[] = {
    TENSOR("blk.%.attn_norm", "model.layers.%.attention_layernorm"),
    TENSOR("blk.%.ffn_norm", "model.layers.%.feedforward_layernorm"),
    ELEMENT("xielu.alpha_n", "model.layers.%.mlp.act_fn.alpha_n"),
    ELEMENT("xielu.alpha_p", "model.layers.%.mlp.act_fn.alpha_p"),
    SCALAR("xielu.beta", "model.layers.%.mlp.act_fn.beta"),
    SCALAR("xielu.eps", "model.layers.%.mlp.act_fn.eps"),
    END_OF_RULES,
};

static const struct fs_hf_entry apertus_config[] = {
    JSON("hidden_act", "\"xielu\""),
    HAS("attention_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

/* ---- bitnet ---- */

static const struct fs_hf_rule bitnet_rules[] = {
    TENSOR("blk.%.attn_sub_norm", "model.layers.%.self_attn.attn_sub_norm"),
    TENSOR("blk.%.ffn_sub_norm", "model.layers.%.mlp.ffn_sub_norm"),
    END_OF_RULES,
};

/* Files of 2024 have the scales of weights in tensors of their own, which no checkpoint has. */
static bool has_scaled_weights(const struct fs_hf_model *hf)
{
    return !fs_hf_any_tensor(hf, "blk.%.attn_q.scale");
}

/* ---- models with layer norms ---- */

static const struct fs_hf_rule nemotron_rules[] = {
    SUM("output_norm.weight", "model.norm.weight", -1),
    SUM("blk.%.attn_norm.weight", "model.layers.%.input_layernorm.weight", -1),
    SUM("blk.%.ffn_norm.weight", "model.layers.%.post_attention_layernorm.weight", -1),
    END_OF_RULES,
};

static const struct fs_hf_entry nemotron_config[] = {
    KEY("norm_eps", "attention.layer_norm_epsilon"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule starcoder2_rules[] = {
    TENSOR("blk.%.ffn_up", "model.layers.%.mlp.c_fc"),
    TENSOR("blk.%.ffn_down", "model.layers.%.mlp.c_proj"),
    END_OF_RULES,
};

static const struct fs_hf_entry starcoder2_config[] = {
    KEY("norm_epsilon", "attention.layer_norm_epsilon"),
    HAS("use_bias", "blk.%.ffn_up.bias"),
    JSON("hidden_act", "\"gelu_pytorch_tanh\""),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

static const struct fs_hf_rule stablelm_rules[] = {
    TENSOR("blk.%.attn_q_norm.weight", "model.layers.%.self_attn.q_layernorm.norms.#.weight"),
    TENSOR("blk.%.attn_k_norm.weight", "model.layers.%.self_attn.k_layernorm.norms.#.weight"),
    END_OF_RULES,
};

static const struct fs_hf_entry stablelm_config[] = {
    LACKS("use_parallel_residual", "blk.%.ffn_norm.weight"),
    HAS("use_qkv_bias", "blk.%.attn_q.bias"),
    HAS("qk_layernorm", "blk.%.attn_q_norm.weight"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry cohere_config[] = {
    KEY("logit_scale", "logit_scale"),
    HAS("use_qk_norm", "blk.%.attn_q_norm.weight"),
    HAS("attention_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

#define RULES_BUT_QK fs_hf_embedding_rules, fs_hf_norm_rules, fs_hf_attention_rules, fs_hf_mlp_rules
#define RMS_CONFIG   fs_hf_sizes, fs_hf_rms_norm, fs_hf_silu
#define LAYER_CONFIG fs_hf_sizes, fs_hf_layer_norm

/*
 * internlm2, exaone and minicpm are here as classes that compute the same, since transformers does
 * not have theirs; qwen2vl and qwen3vl as their models of text.
 */
const struct fs_hf_row fs_hf_rows_dense[] = {
    {.architecture = "llama",
     .applies = has_experts,
     .class_name = "MixtralForCausalLM",
     .model_type = "mixtral",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK, fs_hf_block_sparse_rules},
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, mixtral_config}},
    {.architecture = "llama",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "internlm2",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "exaone",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "minicpm",
     .class_name = "GraniteForCausalLM",
     .model_type = "granite",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, biases, minicpm_config}},
    {.architecture = "mistral3",
     .class_name = "Ministral3ForCausalLM",
     .model_type = "ministral3",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, window}},
    {.architecture = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .needs = {"blk.%.attn_q.bias"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, no_window}},
    {.architecture = "qwen2vl",
     .class_name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .needs = {"blk.%.attn_q.bias"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, no_window}},
    {.architecture = "qwen3vl",
     .class_name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, no_window}},
    {.architecture = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, no_window}},
    {.architecture = "olmo",
     .class_name = "OlmoForCausalLM",
     .model_type = "olmo",
     .rules = {olmo_rules, fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, fs_hf_silu, fs_hf_rope, olmo_config, fs_hf_attention_bias}},
    {.architecture = "olmo2",
     .applies = has_window,
     .class_name = "Olmo3ForCausalLM",
     .model_type = "olmo3",
     .rules = {post_norm_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, rope_by_type, windows_of_four, fs_hf_attention_bias}},
    {.architecture = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight"},
     .rules = {post_norm_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias}},
    {.architecture = "exaone4",
     .class_name = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight"},
     .rules = {post_norm_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, windows_of_four}},
    {.architecture = "granite",
     .class_name = "GraniteForCausalLM",
     .model_type = "granite",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {granite_sizes, fs_hf_rms_norm, fs_hf_silu, fs_hf_rope, biases, granite_config}},
    {.architecture = "arcee",
     .class_name = "ArceeForCausalLM",
     .model_type = "arcee",
     .has_no_gate = true,
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, fs_hf_rms_norm, relu_squared, fs_hf_rope, fs_hf_head_dim_config,
                biases}},
    {.architecture = "apertus",
     .class_name = "ApertusForCausalLM",
     .model_type = "apertus",
     .has_no_gate = true,
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {apertus_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, fs_hf_rms_norm, fs_hf_rope, apertus_config}},
    {.architecture = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .rules = {fs_hf_rotated_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, biases, no_window}},
    {.architecture = "seed_oss",
     .class_name = "SeedOssForCausalLM",
     .model_type = "seed_oss",
     .needs = {"blk.%.post_attention_norm.weight"},
     .rules = {seed_oss_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, seed_oss_config}},
    {.architecture = "hunyuan-dense",
     .class_name = "HunYuanDenseV1ForCausalLM",
     .model_type = "hunyuan_v1_dense",
     .needs = {"blk.%.attn_q_norm.weight"},
     .rules = {hunyuan_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "ernie4_5",
     .class_name = "Ernie4_5ForCausalLM",
     .model_type = "ernie4_5",
     .rules = {RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, ernie_config}},
    {.architecture = "chatglm",
     .class_name = "GlmForCausalLM",
     .model_type = "glm",
     .has_no_gate = true,
     .rules = {glm_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_partial_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "glm4",
     .class_name = "Glm4ForCausalLM",
     .model_type = "glm4",
     .has_no_gate = true,
     .needs = {"blk.%.post_attention_norm.weight", "blk.%.post_ffw_norm.weight"},
     .rules = {glm_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_partial_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "phi3",
     .class_name = "Phi3ForCausalLM",
     .model_type = "phi3",
     .has_no_gate = true,
     .rules = {phi3_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_partial_rope, phi3_config}},
    {.architecture = "bitnet",
     .applies = has_scaled_weights,
     .class_name = "BitNetForCausalLM",
     .model_type = "bitnet",
     .rules = {bitnet_rules, RULES_BUT_QK},
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias}},
    {.architecture = "nemotron",
     .class_name = "NemotronForCausalLM",
     .model_type = "nemotron",
     .has_no_gate = true,
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {nemotron_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, relu_squared, fs_hf_partial_rope, fs_hf_head_dim_config, biases,
                nemotron_config}},
    {.architecture = "jais2",
     .class_name = "Jais2ForCausalLM",
     .model_type = "jais2",
     .has_no_gate = true,
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {RULES_BUT_QK},
     .config = {LAYER_CONFIG, relu_squared, fs_hf_rope, fs_hf_head_dim_config, biases}},
    {.architecture = "starcoder2",
     .class_name = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .has_no_gate = true,
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {starcoder2_rules, RULES_BUT_QK},
     .config = {fs_hf_sizes, fs_hf_rope, starcoder2_config}},
    {.architecture = "stablelm",
     .class_name = "StableLmForCausalLM",
     .model_type = "stablelm",
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {stablelm_rules, RULES_BUT_QK},
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_partial_rope, stablelm_config}},
    {.architecture = "command-r",
     .class_name = "CohereForCausalLM",
     .model_type = "cohere",
     .rules = {RULES_BUT_QK},
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_rope, cohere_config}},
    {.architecture = "cohere2",
     .class_name = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .rules = {RULES_BUT_QK},
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config, cohere_config,
                windows_of_four}},
    {.architecture = NULL},
};
