/* Checkpoints of models like llama, with one dense feed-forward per layer; and mixtral. */
#include "fs/tree/hf/hf_rows.h"

#include <math.h>

/* ---- llama, mixtral ---- */

static bool has_experts(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "expert_count", 0) > 0 || fs_hf_any_tensor(hf, "blk.%.ffn_gate_inp") ||
           fs_hf_any_tensor(hf, "blk.%.ffn_up_exps");
}

#define BIASES            ATTENTION_BIAS, MLP_BIAS
#define OPTIONAL_HEAD_DIM KEY_OR("head_dim", "attention.key_length", "")
#define RELU_SQUARED      JSON("hidden_act", "\"relu2\"")
#define NO_WINDOW         JSON("use_sliding_window", "false")
#define WINDOWS_OF_FOUR   WINDOW, CALL_WITH("layer_types", fs_hf_write_layer_types, 4)

/* ---- one norm more, other names ---- */

/* The key feed_forward_length is of experts, also in a file that has only the shared expert. */
static const struct fs_hf_entry granite_sizes[] = {
    COMMON_SIZES,
    COUNT_OF("intermediate_size", "blk.%.ffn_up.weight", fs_hf_write_rows),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    END_OF_CONFIG,
};

/*
 * MiniCPM computes as Granite does, with the usual attention scale. Without keys, the scales of
 * the first MiniCPM models apply.
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

static bool has_window(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "attention.sliding_window", 0) > 0;
}

/* M-RoPE: the converter lets halves of rotated pairs follow one another. */
static bool has_sections(const struct fs_hf_model *hf)
{
    for (uint64_t i = 0; i < 4; i++) {
        if (fs_hf_number_at(hf, "rope.dimension_sections", i, 0) != 0)
            return true;
    }
    return false;
}

/* ---- models with layer norms ---- */

static const struct fs_hf_entry cohere_config[] = {
    KEY("logit_scale", "logit_scale"),
    ATTENTION_BIAS,
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

/*
 * internlm2, exaone and minicpm are here as classes that compute the same, since transformers does
 * not have theirs; qwen2vl and qwen3vl as their models of text.
 */
const struct fs_hf_row fs_hf_rows_dense[] = {
    {"llama", "MixtralForCausalLM", "mixtral", gguf_naming_mixtral, .applies = has_experts,
     .has_layout = true,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, OPTIONAL_HEAD_DIM, NUM_LOCAL_EXPERTS, WINDOW)},
    {"llama", "LlamaForCausalLM", "llama", gguf_naming_llama, .has_layout = true,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, OPTIONAL_HEAD_DIM, BIASES)},
    {"internlm2", "LlamaForCausalLM", "llama", gguf_naming_llama,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, OPTIONAL_HEAD_DIM, ATTENTION_BIAS)},
    {"exaone", "LlamaForCausalLM", "llama", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, OPTIONAL_HEAD_DIM, ATTENTION_BIAS)},
    {"minicpm", "GraniteForCausalLM", "granite", gguf_naming_llama,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, BIASES, CALL("scales", write_minicpm_scales))},
    {"mistral3", "Ministral3ForCausalLM", "ministral3", gguf_naming_llama,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, WINDOW)},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", gguf_naming_llama_plain, .needs = "blk.%.attn_q.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, NO_WINDOW)},
    {"qwen2vl", "Qwen2ForCausalLM", "qwen2", gguf_naming_llama_plain, .needs = "blk.%.attn_q.bias",
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, NO_WINDOW)},
    {"qwen3vl", "Qwen3ForCausalLM", "qwen3", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS, NO_WINDOW)},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS, NO_WINDOW)},
    {"olmo", "OlmoForCausalLM", "olmo", gguf_naming_olmo,
     .config = CONFIG(SIZES, SILU, ROPE, KEY_OR("clip_qkv", "attention.clamp_kqv", "null"),
                      ATTENTION_BIAS)},
    {"olmo2", "Olmo3ForCausalLM", "olmo3", gguf_naming_olmo3, .applies = has_window,
     .config = CONFIG(SIZES, RMS_NORM, SILU, CALL("rope", fs_hf_write_rope_by_type),
                      WINDOWS_OF_FOUR, ATTENTION_BIAS)},
    {"olmo2", "Olmo2ForCausalLM", "olmo2", gguf_naming_olmo3,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, ATTENTION_BIAS)},
    {"exaone4", "Exaone4ForCausalLM", "exaone4", gguf_naming_olmo3,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, OPTIONAL_HEAD_DIM, WINDOWS_OF_FOUR)},
    {"granite", "GraniteForCausalLM", "granite", gguf_naming_llama,
     .config = CONFIG(TABLE(granite_sizes), RMS_NORM, SILU, ROPE, BIASES, GRANITE_SCALES,
                      KEY("logits_scaling", "logit_scale"))},
    {"arcee", "ArceeForCausalLM", "arcee", gguf_naming_llama,
     .config = CONFIG(SIZES, RMS_NORM, RELU_SQUARED, ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"apertus", "ApertusForCausalLM", "apertus", gguf_naming_apertus,
     .config = CONFIG(SIZES, RMS_NORM, ROPE, JSON("hidden_act", "\"xielu\""), ATTENTION_BIAS)},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3", gguf_naming_llama,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, ATTENTION_BIAS, NO_WINDOW)},
    {"seed_oss", "SeedOssForCausalLM", "seed_oss", gguf_naming_seed_oss,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"hunyuan-dense", "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", gguf_naming_hunyuan_v1_dense,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"ernie4_5", "Ernie4_5ForCausalLM", "ernie4_5", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE, HEAD_DIM,
                      HAS_BIASES("use_bias", "blk.%.attn_q.bias", OF_ATTENTION))},
    {"chatglm", "GlmForCausalLM", "glm", gguf_naming_glm,
     .config = CONFIG(SIZES, RMS_NORM, SILU, PARTIAL_ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"glm4", "Glm4ForCausalLM", "glm4", gguf_naming_glm4, .applies = has_sections,
     .config = CONFIG(SIZES, RMS_NORM, SILU, PARTIAL_ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"glm4", "Glm4ForCausalLM", "glm4", gguf_naming_glm,
     .config = CONFIG(SIZES, RMS_NORM, SILU, PARTIAL_ROPE, HEAD_DIM, ATTENTION_BIAS)},
    {"phi3", "Phi3ForCausalLM", "phi3", gguf_naming_phi3,
     .config = CONFIG(SIZES, RMS_NORM, SILU, CALL("partial_rotary_factor", fs_hf_write_phi3_rope),
                      WINDOW)},
    {"bitnet", "BitNetForCausalLM", "bitnet", gguf_naming_bitnet,
     .config = CONFIG(SIZES, RMS_NORM, SILU, ROPE)},
    {"nemotron", "NemotronForCausalLM", "nemotron", gguf_naming_nemotron,
     .config = CONFIG(SIZES, RELU_SQUARED, PARTIAL_ROPE, HEAD_DIM, BIASES,
                      KEY("norm_eps", "attention.layer_norm_epsilon"))},
    {"jais2", "Jais2ForCausalLM", "jais2", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, LAYER_NORM, RELU_SQUARED, ROPE, HEAD_DIM, BIASES)},
    {"starcoder2", "Starcoder2ForCausalLM", "starcoder2", gguf_naming_starcoder2,
     .config = CONFIG(SIZES, ROPE, KEY("norm_epsilon", "attention.layer_norm_epsilon"),
                      HAS("use_bias", "blk.%.ffn_up.bias"),
                      JSON("hidden_act", "\"gelu_pytorch_tanh\""), WINDOW)},
    {"stablelm", "StableLmForCausalLM", "stablelm", gguf_naming_stablelm,
     .config = CONFIG(SIZES, LAYER_NORM, SILU, PARTIAL_ROPE,
                      LACKS("use_parallel_residual", "blk.%.ffn_norm.weight"),
                      HAS_BIASES("use_qkv_bias", "blk.%.attn_q.bias", "attn_q attn_k attn_v"),
                      HAS("qk_layernorm", "blk.%.attn_q_norm.weight"))},
    {"command-r", "CohereForCausalLM", "cohere", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, LAYER_NORM, SILU, ROPE, TABLE(cohere_config),
                      HAS("use_qk_norm", "blk.%.attn_q_norm.weight"))},
    {"cohere2", "Cohere2ForCausalLM", "cohere2", gguf_naming_llama_plain,
     .config = CONFIG(SIZES, LAYER_NORM, SILU, ROPE, HEAD_DIM, TABLE(cohere_config),
                      CALL("rotary_pct", write_whole_part), WINDOWS_OF_FOUR)},
    {.architecture = NULL},
};
