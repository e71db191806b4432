#include "fs/tree/hf/hf_rows.h"

#include "fs/tree/hf/hf_row_parts.h"

/* ---- which row a model needs ---- */

static bool has_experts(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "expert_count", 0) > 0 || fs_hf_any_tensor(hf, "blk.%.ffn_gate_inp") ||
           fs_hf_any_tensor(hf, "blk.%.ffn_up_exps");
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

static bool has_shared_experts(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.ffn_up_shexp");
}

static bool has_two_norms(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.attn_norm_2");
}

static bool has_choice_bias(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, CHOICE_BIAS) || fs_hf_number(hf, "expert_count", 0) == 0;
}

static bool has_inner_norms(const struct fs_hf_model *hf)
{
    return fs_hf_bool(hf, "ssm.dt_b_c_rms", false);
}

/* Bamba has none of Granite's scales. */
static bool is_bamba(const struct fs_hf_model *hf)
{
    return !fs_hf_key(hf, "embedding_scale") && !fs_hf_key(hf, "residual_scale") &&
           !fs_hf_key(hf, "attention.scale") && !fs_hf_key(hf, "logit_scale");
}

/* ---- the rows ---- */

/*
 * internlm2, exaone and minicpm are here as classes that compute the same, since transformers does
 * not have theirs; qwen2vl and qwen3vl as their models of text.
 */
static const struct fs_hf_row rows[] = {
    {"llama", "MixtralForCausalLM", "mixtral", gguf_naming_mixtral,
     .config = SIZES BASE OPTIONAL_HEAD_DIM NUM_LOCAL_EXPERTS WINDOW, .applies = has_experts,
     .has_layout = true},
    {"llama", "LlamaForCausalLM", "llama", gguf_naming_llama,
     .config = SIZES BASE OPTIONAL_HEAD_DIM BIASES, .has_layout = true},
    {"internlm2", "LlamaForCausalLM", "llama", gguf_naming_llama,
     .config = SIZES BASE OPTIONAL_HEAD_DIM ATTENTION_BIAS},
    {"exaone", "LlamaForCausalLM", "llama", gguf_naming_llama_plain,
     .config = SIZES BASE OPTIONAL_HEAD_DIM ATTENTION_BIAS},
    {"minicpm", "GraniteForCausalLM", "granite", gguf_naming_llama,
     .config = SIZES BASE BIASES " scales@minicpm_scales"},
    {"mistral3", "Ministral3ForCausalLM", "ministral3", gguf_naming_llama,
     .config = SIZES BASE HEAD_DIM WINDOW},
    {"qwen2", "Qwen2ForCausalLM", "qwen2", gguf_naming_llama_plain, .config = SIZES BASE NO_WINDOW,
     .needs = "blk.%.attn_q.bias"},
    {"qwen2vl", "Qwen2ForCausalLM", "qwen2", gguf_naming_llama_plain,
     .config = SIZES BASE NO_WINDOW, .needs = "blk.%.attn_q.bias"},
    {"qwen3vl", "Qwen3ForCausalLM", "qwen3", gguf_naming_llama_plain, .config = QWEN3 NO_WINDOW},
    {"qwen3", "Qwen3ForCausalLM", "qwen3", gguf_naming_llama_plain, .config = QWEN3 NO_WINDOW},
    {"olmo", "OlmoForCausalLM", "olmo", gguf_naming_olmo,
     .config = SIZES SILU ROPE " clip_qkv=attention.clamp_kqv:null" ATTENTION_BIAS},
    {"olmo2", "Olmo3ForCausalLM", "olmo3", gguf_naming_olmo3,
     .config = SIZES RMS_NORM SILU " rope@rope_by_type" WINDOWS "4" ATTENTION_BIAS,
     .applies = has_window},
    {"olmo2", "Olmo2ForCausalLM", "olmo2", gguf_naming_olmo3, .config = SIZES BASE ATTENTION_BIAS},
    {"exaone4", "Exaone4ForCausalLM", "exaone4", gguf_naming_olmo3,
     .config = SIZES BASE OPTIONAL_HEAD_DIM WINDOWS "4"},
    {"granite", "GraniteForCausalLM", "granite", gguf_naming_llama,
     .config = GRANITE_SIZES BASE BIASES GRANITE_SCALES " logits_scaling=logit_scale"},
    {"arcee", "ArceeForCausalLM", "arcee", gguf_naming_llama,
     .config = SIZES RMS_NORM RELU_SQUARED ROPE HEAD_DIM ATTENTION_BIAS},
    {"apertus", "ApertusForCausalLM", "apertus", gguf_naming_apertus,
     .config = SIZES RMS_NORM ROPE " hidden_act:'xielu'" ATTENTION_BIAS},
    {"smollm3", "SmolLM3ForCausalLM", "smollm3", gguf_naming_llama,
     .config = SIZES BASE ATTENTION_BIAS NO_WINDOW},
    {"seed_oss", "SeedOssForCausalLM", "seed_oss", gguf_naming_seed_oss, .config = QWEN3},
    {"hunyuan-dense", "HunYuanDenseV1ForCausalLM", "hunyuan_v1_dense", gguf_naming_hunyuan_v1_dense,
     .config = QWEN3},
    {"ernie4_5", "Ernie4_5ForCausalLM", "ernie4_5", gguf_naming_llama_plain,
     .config = SIZES BASE HEAD_DIM USE_BIAS},
    {"chatglm", "GlmForCausalLM", "glm", gguf_naming_glm,
     .config = SIZES RMS_NORM SILU PARTIAL_ROPE HEAD_DIM ATTENTION_BIAS},
    {"glm4", "Glm4ForCausalLM", "glm4", gguf_naming_glm4,
     .config = SIZES RMS_NORM SILU PARTIAL_ROPE HEAD_DIM ATTENTION_BIAS, .applies = has_sections},
    {"glm4", "Glm4ForCausalLM", "glm4", gguf_naming_glm,
     .config = SIZES RMS_NORM SILU PARTIAL_ROPE HEAD_DIM ATTENTION_BIAS},
    {"phi3", "Phi3ForCausalLM", "phi3", gguf_naming_phi3,
     .config = SIZES RMS_NORM SILU " partial_rotary_factor@phi3_rope" WINDOW},
    {"bitnet", "BitNetForCausalLM", "bitnet", gguf_naming_bitnet, .config = SIZES BASE},
    {"nemotron", "NemotronForCausalLM", "nemotron", gguf_naming_nemotron,
     .config =
         SIZES RELU_SQUARED PARTIAL_ROPE HEAD_DIM BIASES " norm_eps=attention.layer_norm_epsilon"},
    {"jais2", "Jais2ForCausalLM", "jais2", gguf_naming_llama_plain,
     .config = SIZES LAYER_NORM RELU_SQUARED ROPE HEAD_DIM BIASES},
    {"starcoder2", "Starcoder2ForCausalLM", "starcoder2", gguf_naming_starcoder2,
     .config =
         SIZES ROPE " norm_epsilon=attention.layer_norm_epsilon use_bias@has/blk.%.ffn_up.bias "
                    "hidden_act:'gelu_pytorch_tanh'" WINDOW},
    {"stablelm", "StableLmForCausalLM", "stablelm", gguf_naming_stablelm,
     .config = SIZES LAYER_NORM SILU PARTIAL_ROPE
     " use_parallel_residual@lacks/blk.%.ffn_norm.weight "
     "use_qkv_bias@has/blk.%.attn_q.bias" OF_QKV " qk_layernorm@has/blk.%.attn_q_norm.weight"},
    {"command-r", "CohereForCausalLM", "cohere", gguf_naming_llama_plain,
     .config = SIZES LAYER_NORM SILU ROPE COHERE QK_NORM},
    {"cohere2", "Cohere2ForCausalLM", "cohere2", gguf_naming_llama_plain,
     .config = SIZES LAYER_NORM SILU ROPE HEAD_DIM COHERE " rotary_pct@whole_part" WINDOWS "4"},
    /* Gemma */
    {"gemma", "GemmaForCausalLM", "gemma", gguf_naming_gemma,
     .config = SIZES HEAD_DIM RMS_NORM ATTENTION_BIAS ROPE " hidden_act:'gelu_pytorch_tanh'" GELU},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", gguf_naming_gemma2,
     .config = SIZES HEAD_DIM RMS_NORM ATTENTION_BIAS ROPE GEMMA2},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", gguf_naming_gemma2,
     .config = SIZES HEAD_DIM RMS_NORM ATTENTION_BIAS GEMMA3},
    {"gemma3n", "Gemma3nForCausalLM", "gemma3n_text", gguf_naming_gemma3n,
     .config = SIZES HEAD_DIM RMS_NORM GEMMA3N, .shares_kv = true},
    {"gemma4", "Gemma4ForCausalLM", "gemma4_text", gguf_naming_gemma4, .config = GEMMA4 RMS_NORM,
     .shares_kv = true},
    /* GPT-2 and models of its time */
    {"gpt2", "GPT2LMHeadModel", "gpt2", gguf_naming_gpt2,
     .config = GPT " activation_function:'gelu_new'", .needs = "blk.%.attn_qkv.bias"},
    {"starcoder", "GPTBigCodeForCausalLM", "gpt_bigcode", gguf_naming_gpt_bigcode,
     .config = GPT " activation_function:'gelu_pytorch_tanh' multi_query@multi_query",
     .needs = "blk.%.attn_qkv.bias"},
    {"gptj", "GPTJForCausalLM", "gptj", gguf_naming_gptj,
     .config = GPT " activation_function:'gelu_new' rotary_dim=rope.dimension_count"},
    {"bloom", "BloomForCausalLM", "bloom", gguf_naming_bloom, .config = BLOOM, .has_layout = true,
     .needs = "blk.%.attn_qkv.bias"},
    {"gptneox", "GPTNeoXForCausalLM", "gpt_neox", gguf_naming_gpt_neox, .config = GPTNEOX,
     .has_layout = true},
    {"falcon", "FalconForCausalLM", "falcon", gguf_naming_falcon, .config = FALCON,
     .applies = has_two_norms, .has_layout = true},
    {"falcon", "FalconForCausalLM", "falcon", gguf_naming_falcon_plain, .config = FALCON,
     .has_layout = true},
    {"mpt", "MptForCausalLM", "mpt", gguf_naming_mpt,
     .config = MPT_SIZES EPSILON " attn_config@mpt_attention"},
    {"dbrx", "DbrxForCausalLM", "dbrx", gguf_naming_dbrx,
     .config = MPT_SIZES " dbrx@dbrx_parts" ROPE},
    {"phi2", "PhiForCausalLM", "phi", gguf_naming_phi, .config = PHI2,
     .needs = "blk.%.attn_q.bias"},
    /* mixtures of experts */
    {"qwen2moe", "Qwen2MoeForCausalLM", "qwen2_moe", gguf_naming_qwen2_moe,
     .config = SIZES BASE NUM_EXPERTS QWEN2MOE},
    {"qwen3moe", "Qwen3MoeForCausalLM", "qwen3_moe", gguf_naming_qwen3_moe, .config = QWEN3MOE},
    {"qwen3vlmoe", "Qwen3MoeForCausalLM", "qwen3_moe", gguf_naming_qwen3_moe, .config = QWEN3MOE},
    {"olmoe", "OlmoeForCausalLM", "olmoe", gguf_naming_qwen3_moe,
     .config = SIZES BASE NUM_EXPERTS " clip_qkv:null" NOT_NORMED ATTENTION_BIAS},
    {"mellum", "MellumForCausalLM", "mellum", gguf_naming_qwen3_moe,
     .config = SIZES RMS_NORM SILU HEAD_DIM NUM_LOCAL_EXPERTS EXPERT_WIDTH NORMED WINDOWS
     "4" MLP_KINDS " rope@rope_by_type/0/new" ATTENTION_BIAS},
    {"granitemoe", "GraniteMoeSharedForCausalLM", "granitemoeshared", gguf_naming_granitemoeshared,
     .config = GRANITEMOE, .applies = has_shared_experts},
    {"granitemoe", "GraniteMoeForCausalLM", "granitemoe", gguf_naming_granitemoeshared,
     .config = GRANITEMOE},
    {"gpt-oss", "GptOssForCausalLM", "gpt_oss", gguf_naming_gpt_oss,
     .config = QWEN3 NUM_LOCAL_EXPERTS WINDOWS "2"},
    {"llama4", "Llama4ForCausalLM", "llama4_text", gguf_naming_llama4,
     .config = LLAMA4 BASE HEAD_DIM NUM_LOCAL_EXPERTS ATTENTION_BIAS},
    {"glm4moe", "Glm4MoeForCausalLM", "glm4_moe", gguf_naming_glm4_moe,
     .config = MOE_SIZES RMS_NORM SILU PARTIAL_ROPE HEAD_DIM ATTENTION_BIAS ROUTED QK_NORM NO_NEXTN
         BY_SIGMOID,
     .needs = CHOICE_BIAS},
    {"dots1", "Dots1ForCausalLM", "dots1", gguf_naming_dots1, .config = QWEN3 ROUTED SIGMOID_SCORES,
     .needs = CHOICE_BIAS},
    {"exaone-moe", "ExaoneMoeForCausalLM", "exaone_moe", gguf_naming_exaone_moe,
     .config = SIZES BASE HEAD_DIM ROUTED " num_experts=expert_count" SHARED_COUNT MLP_KINDS WINDOWS
                                          "4" SIGMOID_SCORES,
     .needs = CHOICE_BIAS},
    {"ernie4_5-moe", "Ernie4_5_MoeForCausalLM", "ernie4_5_moe", gguf_naming_ernie4_5_moe,
     .config = SIZES BASE ERNIE_MOE, .needs = CHOICE_BIAS},
    {"hunyuan-moe", "HunYuanMoEV1ForCausalLM", "hunyuan_v1_moe", gguf_naming_hunyuan_v1_moe,
     .config = QWEN3 " num_experts=expert_count moe_topk=expert_used_count"},
    {"hy_v3", "HYV3ForCausalLM", "hy_v3", gguf_naming_hy_v3,
     .config = SIZES BASE HEAD_DIM NUM_EXPERTS HY_V3 ATTENTION_BIAS},
    {"afmoe", "AfmoeForCausalLM", "afmoe", gguf_naming_afmoe,
     .config = SIZES BASE HEAD_DIM NUM_EXPERTS AFMOE ATTENTION_BIAS, .needs = CHOICE_BIAS},
    {"laguna", "LagunaForCausalLM", "laguna", gguf_naming_laguna,
     .config = LAGUNA HEAD_DIM RMS_NORM SILU NUM_EXPERTS ATTENTION_BIAS, .needs = CHOICE_BIAS},
    {"cohere2moe", "Cohere2MoeForCausalLM", "cohere2_moe", gguf_naming_cohere2_moe,
     .config = MOE_SIZES LAYER_NORM SILU ROPE HEAD_DIM NUM_EXPERTS COHERE2MOE},
    {"minimax-m2", "MiniMaxM2ForCausalLM", "minimax_m2", gguf_naming_minimax_m2,
     .config = SIZES RMS_NORM SILU HEAD_DIM NUM_LOCAL_EXPERTS PARTIAL_ROPE
     " rotary_dim=rope.dimension_count?" SIGMOID_SCORES,
     .needs = CHOICE_BIAS},
    {"phimoe", "PhimoeForCausalLM", "phimoe", gguf_naming_minimax_m2,
     .config = SIZES SILU ROPE NUM_LOCAL_EXPERTS RMS_NORM ATTENTION_BIAS
     " lm_head_bias@has/output.bias" WINDOW},
    /* latent attention */
    {"deepseek2", "DeepseekV3ForCausalLM", "deepseek_v3", gguf_naming_deepseek_v3,
     .config =
         LATENT ROUTED " topk_method:'noaux_tc'" SIGMOID_SCORES " rope_interleave:true" NO_NEXTN,
     .applies = has_choice_bias},
    {"deepseek2", "DeepseekV2ForCausalLM", "deepseek_v2", gguf_naming_deepseek_v2,
     .config = LATENT ROUTED " topk_method@choice_method" BY_SOFTMAX},
    {"deepseek32", "DeepseekV32ForCausalLM", "deepseek_v32", gguf_naming_deepseek_v32,
     .config = INDEXER, .needs = CHOICE_BIAS},
    {"glm-dsa", "GlmMoeDsaForCausalLM", "glm_moe_dsa", gguf_naming_deepseek_v32, .config = INDEXER,
     .needs = CHOICE_BIAS},
    /* The scales of MiniCPM 3 are in no key; llama.cpp has them as constants. */
    {"minicpm3", "MiniCPM3ForCausalLM", "minicpm3", gguf_naming_minicpm3,
     .config = LATENT " scale_emb:12 scale_depth:1.4 dim_model_base:256"},
    {"kimi-linear", "KimiLinearForCausalLM", "kimi_linear", gguf_naming_kimi_linear,
     .config = KIMI RMS_NORM SILU BY_SIGMOID},
    /* Mamba, and hybrids of attention and others */
    {"mamba", "FalconMambaForCausalLM", "falcon_mamba", gguf_naming_falcon_mamba, .config = MAMBA1,
     .applies = has_inner_norms},
    {"mamba", "MambaForCausalLM", "mamba", gguf_naming_falcon_mamba, .config = MAMBA1},
    {"mamba2", "Mamba2ForCausalLM", "mamba2", gguf_naming_mamba2,
     .config =
         MAMBA " num_heads=ssm.time_step_rank head_dim" SSM_HEAD_DIM " n_groups=ssm.group_count"},
    {"granitehybrid", "BambaForCausalLM", "bamba", gguf_naming_bamba, .config = BAMBA,
     .applies = is_bamba},
    {"granitehybrid", "GraniteMoeHybridForCausalLM", "granitemoehybrid",
     gguf_naming_granitemoehybrid, .config = GRANITE_HYBRID},
    {"jamba", "JambaForCausalLM", "jamba", gguf_naming_jamba, .config = JAMBA},
    {"falcon-h1", "FalconH1ForCausalLM", "falcon_h1", gguf_naming_falcon_h1, .config = FALCON_H1},
    {"nemotron_h", "NemotronHForCausalLM", "nemotron_h", gguf_naming_nemotron_h,
     .config = NEMOTRON_H MLP_BIAS, .needs = CHOICE_BIAS},
    {"nemotron_h_moe", "NemotronHForCausalLM", "nemotron_h", gguf_naming_nemotron_h,
     .config = NEMOTRON_H NEMOTRON_MOE, .needs = CHOICE_BIAS},
    {"qwen3next", "Qwen3NextForCausalLM", "qwen3_next", gguf_naming_qwen3_next,
     .config = LINEAR LINEAR_EXPERTS},
    {"qwen35", "Qwen3_5ForCausalLM", "qwen3_5_text", gguf_naming_qwen3_5, .config = LINEAR},
    {"qwen35moe", "Qwen3_5MoeForCausalLM", "qwen3_5_moe_text", gguf_naming_qwen3_5_moe,
     .config = LINEAR LINEAR_EXPERTS},
    {"lfm2", "Lfm2ForCausalLM", "lfm2", gguf_naming_lfm2, .config = LFM2},
    {"lfm2moe", "Lfm2MoeForCausalLM", "lfm2_moe", gguf_naming_lfm2, .config = LFM2 LFM2MOE},
    {"mimo2", "MiMoV2FlashForCausalLM", "mimo_v2_flash", gguf_naming_mimo_v2_flash,
     .config = MIMO2 RMS_NORM SILU HEAD_DIM ATTENTION_BIAS},
};

const struct fs_hf_row *fs_hf_row_at(size_t index)
{
    return index < sizeof rows / sizeof *rows ? &rows[index] : NULL;
}

const struct fs_hf_row *fs_hf_row_of(const struct fs_hf_model *hf)
{
    const struct fs_hf_row *row;

    for (size_t i = 0; (row = fs_hf_row_at(i)); i++) {
        if (gguf_string_equals(hf->architecture, row->architecture) &&
            (!row->applies || row->applies(hf)))
            return row;
    }
    return NULL;
}
