/* Checkpoints of models like llama, with one dense feed-forward per layer; and mixtral. */
#include "fs/tree/hf/hf_rows.h"

#include <math.h>

/* ---- llama, mixtral ---- */

static bool has_experts(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "expert_count", 0) > 0 || fs_hf_any_tensor(hf, "blk.%.ffn_gate_inp") ||
           fs_hf_any_tensor(hf, "blk.%.ffn_up_exps");
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
    CALL("attention_multiplier", fs_hf_write_attention_scale),
    KEY("logits_scaling", "logit_scale"),
    END_OF_CONFIG,
};

/*
 * MiniCPM computes as Granite does, with the usual scale of scores. The scales of files without
 * keys for them are the scales of the first models.
 */
static void write_minicpm_scales(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const double residual = 1.4 / sqrt((double)fs_hf_n_layer(hf));
    const double logit = fs_hf_float(hf, "embedding_length", 0) / 256;

    (void)entry;
    fs_hf_member_float(config, "embedding_multiplier", fs_hf_float(hf, "embedding_scale", 12));
    fs_hf_member_float(config, "residual_multiplier", fs_hf_float(hf, "residual_scale", residual));
    fs_hf_member_ratio(config, "attention_multiplier", 1 / sqrt((double)fs_hf_head_dim(hf)));
    fs_hf_member_float(config, "logits_scaling", fs_hf_float(hf, "logit_scale", logit));
}

static const struct fs_hf_entry minicpm_config[] = {
    CALL("scales", write_minicpm_scales),
    END_OF_CONFIG,
};

static const struct fs_hf_entry seed_oss_config[] = {
    HAS("attention_bias", "blk.%.attn_q.bias"),
    HAS("attention_out_bias", "blk.%.attn_output.bias"),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry ernie_config[] = {
    HAS("use_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
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

static const struct fs_hf_entry olmo_config[] = {
    KEY_OR("clip_qkv", "attention.clamp_kqv", "null"),
    END_OF_CONFIG,
};

/* M-RoPE: the converter lets halves of rotated pairs follow one another. */
static bool has_sections(const struct fs_hf_model *hf)
{
    for (uint64_t i = 0; i < 4; i++) {
        if (fs_hf_number_at(hf, "rope.dimension_sections", i, 0) != 0)
            return true;
    }
    return false;
}

static const struct fs_hf_entry phi3_config[] = {
    CALL("partial_rotary_factor", fs_hf_write_phi3_rope),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

static const struct fs_hf_entry apertus_config[] = {
    JSON("hidden_act", "\"xielu\""),
    HAS("attention_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

/* ---- models with layer norms ---- */

static const struct fs_hf_entry nemotron_config[] = {
    KEY("norm_eps", "attention.layer_norm_epsilon"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry starcoder2_config[] = {
    KEY("norm_epsilon", "attention.layer_norm_epsilon"),
    HAS("use_bias", "blk.%.ffn_up.bias"),
    JSON("hidden_act", "\"gelu_pytorch_tanh\""),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
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

/* The class rotates whole heads; llama.cpp's converter reads the part that is rotated. */
static void write_whole_part(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t width = fs_hf_head_dim(config->hf);

    if (fs_hf_number(config->hf, "rope.dimension_count", width) != width)
        fs_hf_problem(config, "its key rope.dimension_count is not the width of a head");
    fs_hf_member_json(config, entry->name, "1.0");
}

static const struct fs_hf_entry cohere2_config[] = {
    CALL("rotary_pct", write_whole_part),
    END_OF_CONFIG,
};

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
     .has_layout = true,
     .naming = &gguf_naming_mixtral,
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, mixtral_config}},
    {.architecture = "llama",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .has_layout = true,
     .naming = &gguf_naming_llama,
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "internlm2",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .naming = &gguf_naming_llama,
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "exaone",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, biases}},
    {.architecture = "minicpm",
     .class_name = "GraniteForCausalLM",
     .model_type = "granite",
     .naming = &gguf_naming_llama,
     .config = {RMS_CONFIG, fs_hf_rope, biases, minicpm_config}},
    {.architecture = "mistral3",
     .class_name = "Ministral3ForCausalLM",
     .model_type = "ministral3",
     .naming = &gguf_naming_llama,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, window}},
    {.architecture = "qwen2",
     .class_name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .needs = {"blk.%.attn_q.bias"},
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, no_window}},
    {.architecture = "qwen2vl",
     .class_name = "Qwen2ForCausalLM",
     .model_type = "qwen2",
     .needs = {"blk.%.attn_q.bias"},
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, no_window}},
    {.architecture = "qwen3vl",
     .class_name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, no_window}},
    {.architecture = "qwen3",
     .class_name = "Qwen3ForCausalLM",
     .model_type = "qwen3",
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias, no_window}},
    {.architecture = "olmo",
     .class_name = "OlmoForCausalLM",
     .model_type = "olmo",
     .naming = &gguf_naming_olmo,
     .config = {fs_hf_sizes, fs_hf_silu, fs_hf_rope, olmo_config, fs_hf_attention_bias}},
    {.architecture = "olmo2",
     .applies = has_window,
     .class_name = "Olmo3ForCausalLM",
     .model_type = "olmo3",
     .naming = &gguf_naming_olmo3,
     .config = {RMS_CONFIG, rope_by_type, windows_of_four, fs_hf_attention_bias}},
    {.architecture = "olmo2",
     .class_name = "Olmo2ForCausalLM",
     .model_type = "olmo2",
     .naming = &gguf_naming_olmo3,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias}},
    {.architecture = "exaone4",
     .class_name = "Exaone4ForCausalLM",
     .model_type = "exaone4",
     .naming = &gguf_naming_olmo3,
     .config = {RMS_CONFIG, fs_hf_rope, optional_head_dim, windows_of_four}},
    {.architecture = "granite",
     .class_name = "GraniteForCausalLM",
     .model_type = "granite",
     .naming = &gguf_naming_llama,
     .config = {granite_sizes, fs_hf_rms_norm, fs_hf_silu, fs_hf_rope, biases, granite_config}},
    {.architecture = "arcee",
     .class_name = "ArceeForCausalLM",
     .model_type = "arcee",
     .naming = &gguf_naming_llama,
     .config = {fs_hf_sizes, fs_hf_rms_norm, relu_squared, fs_hf_rope, fs_hf_head_dim_config,
                biases}},
    {.architecture = "apertus",
     .class_name = "ApertusForCausalLM",
     .model_type = "apertus",
     .naming = &gguf_naming_apertus,
     .config = {fs_hf_sizes, fs_hf_rms_norm, fs_hf_rope, apertus_config}},
    {.architecture = "smollm3",
     .class_name = "SmolLM3ForCausalLM",
     .model_type = "smollm3",
     .naming = &gguf_naming_llama,
     .config = {RMS_CONFIG, fs_hf_rope, biases, no_window}},
    {.architecture = "seed_oss",
     .class_name = "SeedOssForCausalLM",
     .model_type = "seed_oss",
     .naming = &gguf_naming_seed_oss,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, seed_oss_config}},
    {.architecture = "hunyuan-dense",
     .class_name = "HunYuanDenseV1ForCausalLM",
     .model_type = "hunyuan_v1_dense",
     .naming = &gguf_naming_hunyuan_v1_dense,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "ernie4_5",
     .class_name = "Ernie4_5ForCausalLM",
     .model_type = "ernie4_5",
     .naming = &gguf_naming_llama_plain,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_head_dim_config, ernie_config}},
    {.architecture = "chatglm",
     .class_name = "GlmForCausalLM",
     .model_type = "glm",
     .naming = &gguf_naming_glm,
     .config = {RMS_CONFIG, fs_hf_partial_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "glm4",
     .applies = has_sections,
     .class_name = "Glm4ForCausalLM",
     .model_type = "glm4",
     .naming = &gguf_naming_glm4,
     .config = {RMS_CONFIG, fs_hf_partial_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "glm4",
     .class_name = "Glm4ForCausalLM",
     .model_type = "glm4",
     .naming = &gguf_naming_glm,
     .config = {RMS_CONFIG, fs_hf_partial_rope, fs_hf_head_dim_config, fs_hf_attention_bias}},
    {.architecture = "phi3",
     .class_name = "Phi3ForCausalLM",
     .model_type = "phi3",
     .naming = &gguf_naming_phi3,
     .config = {RMS_CONFIG, phi3_config}},
    {.architecture = "bitnet",
     .class_name = "BitNetForCausalLM",
     .model_type = "bitnet",
     .naming = &gguf_naming_bitnet,
     .config = {RMS_CONFIG, fs_hf_rope, fs_hf_attention_bias}},
    {.architecture = "nemotron",
     .class_name = "NemotronForCausalLM",
     .model_type = "nemotron",
     .naming = &gguf_naming_nemotron,
     .config = {fs_hf_sizes, relu_squared, fs_hf_partial_rope, fs_hf_head_dim_config, biases,
                nemotron_config}},
    {.architecture = "jais2",
     .class_name = "Jais2ForCausalLM",
     .model_type = "jais2",
     .naming = &gguf_naming_llama_plain,
     .config = {LAYER_CONFIG, relu_squared, fs_hf_rope, fs_hf_head_dim_config, biases}},
    {.architecture = "starcoder2",
     .class_name = "Starcoder2ForCausalLM",
     .model_type = "starcoder2",
     .naming = &gguf_naming_starcoder2,
     .config = {fs_hf_sizes, fs_hf_rope, starcoder2_config}},
    {.architecture = "stablelm",
     .class_name = "StableLmForCausalLM",
     .model_type = "stablelm",
     .naming = &gguf_naming_stablelm,
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_partial_rope, stablelm_config}},
    {.architecture = "command-r",
     .class_name = "CohereForCausalLM",
     .model_type = "cohere",
     .naming = &gguf_naming_llama_plain,
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_rope, cohere_config}},
    {.architecture = "cohere2",
     .class_name = "Cohere2ForCausalLM",
     .model_type = "cohere2",
     .naming = &gguf_naming_llama_plain,
     .config = {LAYER_CONFIG, fs_hf_silu, fs_hf_rope, fs_hf_head_dim_config, cohere_config,
                cohere2_config, windows_of_four}},
    {.architecture = NULL},
};
