/* Checkpoints of Gemma. The norms of 1 to 3 have 1 added. */
#include "fs/tree/hf/hf_rows.h"

#include <math.h>

static const struct fs_hf_rule gemma_rules[] = {
    SUM("output_norm", "model.norm", -1),
    SUM("blk.%.attn_norm", "model.layers.%.input_layernorm", -1),
    SUM("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm", -1),
    SUM("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm", -1),
    END_OF_RULES,
};

static const struct fs_hf_rule gemma1_rules[] = {
    SUM("blk.%.ffn_norm", "model.layers.%.post_attention_layernorm", -1),
    END_OF_RULES,
};

static const struct fs_hf_rule gemma2_rules[] = {
    SUM("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm", -1),
    SUM("blk.%.ffn_norm", "model.layers.%.pre_feedforward_layernorm", -1),
    SUM("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm", -1),
    END_OF_RULES,
};

static const struct fs_hf_entry gemma1_config[] = {
    JSON("hidden_act", "\"gelu_pytorch_tanh\""),
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    END_OF_CONFIG,
};

/*
 * Scores are divided by the root of query_pre_attn_scalar, which no key gives: it is the width of a
 * head, but in the models of 27B parameters n_embd / n_head.
 */
static void write_query_scalar(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_head = fs_hf_n_head(hf, 0);
    const bool is_27b = fs_hf_number(hf, "block_count", 0) == entry->number && n_head > 0;

    fs_hf_member_unsigned(config, "query_pre_attn_scalar",
                          is_27b ? fs_hf_number(hf, "embedding_length", 0) / n_head
                                 : fs_hf_head_dim(hf));
}

static const struct fs_hf_entry gemma2_config[] = {
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    CALL_WITH("query_pre_attn_scalar", write_query_scalar, 46),
    KEY_OR("attn_logit_softcapping", "attn_logit_softcapping", "50.0"),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "30.0"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 2),
    END_OF_CONFIG,
};

static const struct fs_hf_entry gemma3_config[] = {
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    CALL_WITH("query_pre_attn_scalar", write_query_scalar, 62),
    KEY_OR("attn_logit_softcapping", "attn_logit_softcapping", "null"),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "null"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 6),
    CALL_WITH("rope", fs_hf_write_rope_by_type, 10000),
    END_OF_CONFIG,
};

/* ---- gemma3n ---- */

static const struct fs_hf_rule gemma3n_rules[] = {
    TENSOR("per_layer_token_embd", "model.embed_tokens_per_layer"),
    TENSOR("per_layer_model_proj", "model.per_layer_model_projection"),
    TENSOR("per_layer_proj_norm", "model.per_layer_projection_norm"),
    TENSOR("altup_proj", "model.altup_projections.#"),
    TENSOR("altup_unembd_proj", "model.altup_unembed_projections.#"),
    TENSOR("blk.%.altup_correct_scale.weight", "model.layers.%.altup.correct_output_scale"),
    TENSOR("blk.%.altup_correct_coef", "model.layers.%.altup.correction_coefs"),
    TENSOR("blk.%.altup_predict_coef", "model.layers.%.altup.prediction_coefs"),
    TENSOR("blk.%.altup_router", "model.layers.%.altup.modality_router"),
    TENSOR("blk.%.altup_router_norm", "model.layers.%.altup.router_norm"),
    TENSOR("blk.%.laurel_l", "model.layers.%.laurel.linear_left"),
    TENSOR("blk.%.laurel_r", "model.layers.%.laurel.linear_right"),
    TENSOR("blk.%.laurel_post_norm", "model.layers.%.laurel.post_laurel_norm"),
    TENSOR("blk.%.inp_gate", "model.layers.%.per_layer_input_gate"),
    TENSOR("blk.%.proj", "model.layers.%.per_layer_projection"),
    TENSOR("blk.%.post_norm", "model.layers.%.post_per_layer_input_norm"),
    TENSOR("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    TENSOR("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    TENSOR("blk.%.ffn_norm", "model.layers.%.pre_feedforward_layernorm"),
    TENSOR("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm"),
    END_OF_RULES,
};

/*
 * The file has the quantiles of the normal distribution for the shares of activations that become
 * 0, which are given in hundredths.
 */
static void write_sparsity(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);

    fs_hf_begin_array(config, entry->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        const double quantile = fs_hf_float_at(hf, "activation_sparsity_scale", i, -INFINITY);

        fs_hf_element_float(config, round(50 * erfc(-quantile / sqrt(2))) / 100);
    }
    fs_hf_end_array(config);
}

static const struct fs_hf_entry gemma3n_config[] = {
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "null"),
    KEY("hidden_size_per_layer_input", "embedding_length_per_layer_input"),
    COUNT_OF("vocab_size_per_layer_input", "per_layer_token_embd.weight", fs_hf_write_rows),
    COUNT_OF("laurel_rank", "blk.%.laurel_l.weight", fs_hf_write_rows),
    KEY("altup_num_inputs", "altup.num_inputs"),
    KEY("altup_active_idx", "altup.active_idx"),
    HAS("altup_correct_scale", "blk.%.altup_correct_scale"),
    KEY("num_kv_shared_layers", "attention.shared_kv_layers"),
    CALL("activation_sparsity_pattern", write_sparsity),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 5),
    CALL_WITH("rope", fs_hf_write_rope_by_type, 10000),
    END_OF_CONFIG,
};

/* ---- gemma4 ---- */

static const struct fs_hf_rule gemma4_rules[] = {
    TENSOR("blk.%.layer_output_scale.weight", "model.layers.%.layer_scalar"),
    TENSOR("blk.%.ffn_gate_inp.weight", "model.layers.%.router.proj.weight"),
    TENSOR("blk.%.ffn_gate_inp.scale", "model.layers.%.router.scale"),
    TENSOR("blk.%.ffn_gate_up_exps.weight", "model.layers.%.experts.gate_up_proj"),
    TENSOR("blk.%.ffn_down_exps.weight", "model.layers.%.experts.down_proj"),
    TENSOR("blk.%.ffn_down_exps.scale", "model.layers.%.router.per_expert_scale"),
    TENSOR("blk.%.post_ffw_norm_1", "model.layers.%.post_feedforward_layernorm_1"),
    TENSOR("blk.%.post_ffw_norm_2", "model.layers.%.post_feedforward_layernorm_2"),
    TENSOR("blk.%.pre_ffw_norm_2", "model.layers.%.pre_feedforward_layernorm_2"),
    END_OF_RULES,
};

/* Return the number of a key for the first layer with a window, or without one. */
static uint64_t number_of_kind(const struct fs_hf_model *hf, const char *key, bool has_window)
{
    const uint64_t n_layer = fs_hf_n_layer(hf);

    for (uint64_t i = 0; i < n_layer; i++) {
        if ((fs_hf_number_at(hf, "attention.sliding_window_pattern", i, 0) != 0) == has_window)
            return fs_hf_number_at(hf, key, i, 0);
    }
    return fs_hf_number(hf, key, 0);
}

/* Layers without a window have wider heads, and may have fewer that share keys as values. */
static void write_gemma4_heads(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);
    const uint64_t n_ff = fs_hf_number_at(hf, "feed_forward_length", 0, 0);
    bool shares = false;

    (void)entry;
    for (uint64_t i = 0; i < n_layer; i++)
        shares |= fs_hf_layer_has(hf, i, "blk.%.attn_k.weight") &&
                  !fs_hf_layer_has(hf, i, "blk.%.attn_v.weight");
    fs_hf_member_unsigned(config, "num_key_value_heads",
                          number_of_kind(hf, "attention.head_count_kv", true));
    if (shares)
        fs_hf_member_unsigned(config, "num_global_key_value_heads",
                              number_of_kind(hf, "attention.head_count_kv", false));
    fs_hf_member_bool(config, "attention_k_eq_v", shares);
    fs_hf_member_unsigned(config, "intermediate_size", n_ff);
    fs_hf_member_bool(config, "use_double_wide_mlp",
                      fs_hf_number(hf, "feed_forward_length", 0) > n_ff);
}

/* Factors are 1 for the rotated part of a head, and without effect for the rest. */
static void write_gemma4_rope(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const float *factors;
    const size_t n = fs_hf_get_factors(config, "rope_freqs.weight", &factors);
    size_t n_rotated = 0;

    (void)entry;
    for (size_t i = 0; i < n; i++)
        n_rotated += factors[i] == 1;
    fs_hf_begin_object(config, "rope_parameters");
    fs_hf_begin_object(config, "full_attention");
    fs_hf_member_json(config, "rope_type", "\"proportional\"");
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base", 1000000));
    fs_hf_member_ratio(config, "partial_rotary_factor", n > 0 ? (double)n_rotated / (double)n : 1);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "sliding_attention");
    fs_hf_member_json(config, "rope_type", "\"default\"");
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base_swa", 10000));
    fs_hf_end_object(config);
    fs_hf_end_object(config);
}

static const struct fs_hf_entry gemma4_config[] = {
    KEY("hidden_size", "embedding_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    KEY("max_position_embeddings", "context_length"),
    KEY("head_dim", "attention.key_length_swa"),
    KEY("global_head_dim", "attention.key_length"),
    CALL("heads", write_gemma4_heads),
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "null"),
    KEY_OR("hidden_size_per_layer_input", "embedding_length_per_layer_input", "0"),
    COUNT_OF("vocab_size_per_layer_input", "per_layer_token_embd.weight", fs_hf_write_rows),
    KEY_OR("num_kv_shared_layers", "attention.shared_kv_layers", "0"),
    HAS("enable_moe_block", "blk.%.ffn_gate_inp.weight"),
    KEY_OR("num_experts", "expert_count", "null"),
    KEY_OR("top_k_experts", "expert_used_count", "null"),
    KEY_OR("moe_intermediate_size", "expert_feed_forward_length", "null"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    CALL_WITH("layer_types", fs_hf_write_layer_types, 6),
    CALL("rope", write_gemma4_rope),
    END_OF_CONFIG,
};

#define RULES_BUT_NORMS                                                                            \
    fs_hf_embedding_rules, fs_hf_norm_rules, fs_hf_attention_rules, fs_hf_mlp_rules
#define GEMMA_CONFIG fs_hf_sizes, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_attention_bias

const struct fs_hf_row fs_hf_rows_gemma[] = {
    {.architecture = "gemma",
     .class_name = "GemmaForCausalLM",
     .model_type = "gemma",
     .rules = {gemma_rules, gemma1_rules, RULES_BUT_NORMS},
     .config = {GEMMA_CONFIG, fs_hf_rope, gemma1_config}},
    {.architecture = "gemma2",
     .class_name = "Gemma2ForCausalLM",
     .model_type = "gemma2",
     .needs = {"blk.%.post_attention_norm.weight", "blk.%.post_ffw_norm.weight"},
     .rules = {gemma_rules, gemma2_rules, RULES_BUT_NORMS},
     .config = {GEMMA_CONFIG, fs_hf_rope, gemma2_config}},
    {.architecture = "gemma3",
     .class_name = "Gemma3ForCausalLM",
     .model_type = "gemma3_text",
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight"},
     .rules = {gemma_rules, gemma2_rules, RULES_BUT_NORMS},
     .config = {GEMMA_CONFIG, gemma3_config}},
    {.architecture = "gemma3n",
     .class_name = "Gemma3nForCausalLM",
     .model_type = "gemma3n_text",
     .shares_kv = true,
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight", "altup_proj.weight", "altup_unembd_proj.weight",
               "per_layer_token_embd.weight", "per_layer_model_proj.weight",
               "per_layer_proj_norm.weight", "blk.%.inp_gate.weight", "blk.%.proj.weight",
               "blk.%.post_norm.weight"},
     .rules = {gemma3n_rules, RULES_BUT_NORMS},
     .config = {GEMMA_CONFIG, gemma3n_config}},
    {.architecture = "gemma4",
     .class_name = "Gemma4ForCausalLM",
     .model_type = "gemma4_text",
     .shares_kv = true,
     .needs = {"blk.%.attn_q_norm.weight", "blk.%.post_attention_norm.weight",
               "blk.%.post_ffw_norm.weight"},
     .rules = {gemma4_rules, gemma3n_rules, RULES_BUT_NORMS},
     .config = {gemma4_config, fs_hf_rms_norm, fs_hf_attention_bias}},
    {.architecture = NULL},
};
