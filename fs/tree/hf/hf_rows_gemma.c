/* Checkpoints of Gemma. The norms of 1 to 3 have 1 added. */
#include "fs/tree/hf/hf_rows.h"

#include <inttypes.h>
#include <math.h>

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
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, 2),
    END_OF_CONFIG,
};

static const struct fs_hf_entry gemma3_config[] = {
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    CALL_WITH("query_pre_attn_scalar", write_query_scalar, 62),
    JSON("attn_logit_softcapping", "null"),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "null"),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, 6),
    CALL_WITH("rope", fs_hf_write_rope_by_type, 10000),
    END_OF_CONFIG,
};

/* ---- gemma3n ---- */

/* In files without keys for these, as in llama.cpp. */
#define N_SPARSE_LAYERS 10
#define QUANTILE_OF_95  1.6448533535003662
#define N_OWN_KV_LAYERS 20u

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
        const double quantile = fs_hf_float_at(hf, "activation_sparsity_scale", i,
                                               i < N_SPARSE_LAYERS ? QUANTILE_OF_95 : -INFINITY);

        fs_hf_element_float(config, round(50 * erfc(-quantile / sqrt(2))) / 100);
    }
    fs_hf_end_array(config);
}

static void write_n_shared_kv(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    const uint64_t n_own = n_layer < N_OWN_KV_LAYERS ? n_layer : N_OWN_KV_LAYERS;

    fs_hf_member_unsigned(config, entry->name,
                          fs_hf_number(config->hf, "attention.shared_kv_layers", n_layer - n_own));
}

static const struct fs_hf_entry gemma3n_config[] = {
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "30.0"),
    KEY("hidden_size_per_layer_input", "embedding_length_per_layer_input"),
    COUNT_OF("vocab_size_per_layer_input", "per_layer_token_embd.weight", fs_hf_write_rows),
    COUNT_OF("laurel_rank", "blk.%.laurel_l.weight", fs_hf_write_rows),
    KEY("altup_num_inputs", "altup.num_inputs"),
    KEY("altup_active_idx", "altup.active_idx"),
    HAS("altup_correct_scale", "blk.%.altup_correct_scale"),
    CALL("num_kv_shared_layers", write_n_shared_kv),
    CALL("activation_sparsity_pattern", write_sparsity),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, 5),
    CALL_WITH("rope", fs_hf_write_rope_by_type, 10000),
    END_OF_CONFIG,
};

/* ---- gemma4 ---- */

/* Return a key's number for the first layer with a window, or without. */
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
    for (uint64_t i = 0; i < n_layer; i++) {
        if (!fs_hf_layer_has(hf, i, "blk.%.attn_k.weight") ||
            fs_hf_layer_has(hf, i, "blk.%.attn_v.weight"))
            continue;
        shares = true;
        if (fs_hf_number_at(hf, "attention.sliding_window_pattern", i, 0) != 0)
            fs_hf_problem(config,
                          "it has no tensor \"blk.%" PRIu64 ".attn_v.weight\", and only layers "
                          "without a window use keys as values",
                          i);
    }
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
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base", 10000));
    fs_hf_member_ratio(config, "partial_rotary_factor", n > 0 ? (double)n_rotated / (double)n : 1);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "sliding_attention");
    fs_hf_member_json(config, "rope_type", "\"default\"");
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base_swa", 10000));
    fs_hf_end_object(config);
    fs_hf_end_object(config);
}

static const struct fs_hf_entry gemma4_config[] = {
    COMMON_SIZES,
    KEY("head_dim", "attention.key_length_swa"),
    KEY("global_head_dim", "attention.key_length"),
    CALL("heads", write_gemma4_heads),
    JSON("hidden_activation", "\"gelu_pytorch_tanh\""),
    KEY_OR("final_logit_softcapping", "final_logit_softcapping", "30.0"),
    KEY_OR("hidden_size_per_layer_input", "embedding_length_per_layer_input", "0"),
    COUNT_OF("vocab_size_per_layer_input", "per_layer_token_embd.weight", fs_hf_write_rows),
    KEY_OR("num_kv_shared_layers", "attention.shared_kv_layers", "0"),
    HAS("enable_moe_block", "blk.%.ffn_gate_inp.weight"),
    KEY_OR("num_experts", "expert_count", "null"),
    KEY_OR("top_k_experts", "expert_used_count", "null"),
    KEY_OR("moe_intermediate_size", "expert_feed_forward_length", "null"),
    WINDOW,
    CALL_WITH("layer_types", fs_hf_write_layer_types, FS_HF_BY_KEY),
    CALL("rope", write_gemma4_rope),
    END_OF_CONFIG,
};

const struct fs_hf_row fs_hf_rows_gemma[] = {
    {"gemma", "GemmaForCausalLM", "gemma", gguf_naming_gemma,
     .config = CONFIG(SIZES, HEAD_DIM, RMS_NORM, ATTENTION_BIAS, ROPE,
                      JSON("hidden_act", "\"gelu_pytorch_tanh\""),
                      JSON("hidden_activation", "\"gelu_pytorch_tanh\""))},
    {"gemma2", "Gemma2ForCausalLM", "gemma2", gguf_naming_gemma2,
     .config = CONFIG(SIZES, HEAD_DIM, RMS_NORM, ATTENTION_BIAS, ROPE, TABLE(gemma2_config))},
    {"gemma3", "Gemma3ForCausalLM", "gemma3_text", gguf_naming_gemma2,
     .config = CONFIG(SIZES, HEAD_DIM, RMS_NORM, ATTENTION_BIAS, TABLE(gemma3_config))},
    {"gemma3n", "Gemma3nForCausalLM", "gemma3n_text", gguf_naming_gemma3n, .shares_kv = true,
     .config = CONFIG(SIZES, HEAD_DIM, RMS_NORM, TABLE(gemma3n_config))},
    {"gemma4", "Gemma4ForCausalLM", "gemma4_text", gguf_naming_gemma4, .shares_kv = true,
     .config = CONFIG(TABLE(gemma4_config), RMS_NORM)},
    {.architecture = NULL},
};
