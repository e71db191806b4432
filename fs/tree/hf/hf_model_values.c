/* Members of config.json whose values are computed, for the models of a family. */
#include "fs/tree/hf/hf_config.h"

#include <inttypes.h>
#include <math.h>

/* ---- dense models ---- */

/*
 * MiniCPM computes as Granite does, with the usual attention scale. Without keys, the scales of
 * the first MiniCPM models apply.
 */
void fs_hf_write_minicpm_scales(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const double residual = 1.4 / sqrt((double)fs_hf_n_layer(hf));
    const double logit = fs_hf_float(hf, "embedding_length", 0) / 256;

    fs_hf_member_float(config, "embedding_multiplier", fs_hf_float(hf, "embedding_scale", 12));
    fs_hf_member_float(config, "residual_multiplier", fs_hf_float(hf, "residual_scale", residual));
    fs_hf_member_ratio(config, "attention_multiplier", 1 / sqrt((double)fs_hf_head_dim(hf)));
    fs_hf_member_float(config, "logits_scaling", fs_hf_float(hf, "logit_scale", logit));
}

/* Cohere 2: the class rotates whole heads; llama.cpp's converter reads the part that is rotated. */
void fs_hf_write_whole_part(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t width = fs_hf_head_dim(config->hf);

    if (fs_hf_number(config->hf, "rope.dimension_count", width) != width)
        fs_hf_problem(config, "its key rope.dimension_count is not the width of a head");
    fs_hf_member_json(config, member->name, "1.0");
}

/* The number of heads of each layer. */
void fs_hf_write_heads(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);

    fs_hf_begin_array(config, member->name);
    for (uint64_t i = 0; i < n_layer; i++)
        fs_hf_element_unsigned(config, fs_hf_n_head(config->hf, i));
    fs_hf_end_array(config);
}

/* ---- Gemma ---- */

/*
 * Scores are divided by the root of query_pre_attn_scalar, which no key gives: it is the width of a
 * head, but in the models of 27B parameters, which have so many layers, n_embd / n_head.
 */
void fs_hf_write_query_scalar(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_head = fs_hf_n_head(hf, 0);
    const bool is_27b =
        fs_hf_number(hf, "block_count", 0) == fs_hf_argument(member, 0) && n_head > 0;

    fs_hf_member_unsigned(config, member->name,
                          is_27b ? fs_hf_number(hf, "embedding_length", 0) / n_head
                                 : fs_hf_head_dim(hf));
}

/* In files without keys for these, as in llama.cpp. */
#define N_SPARSE_LAYERS 10
#define QUANTILE_OF_95  1.6448533535003662
#define N_OWN_KV_LAYERS 20u

/*
 * The file has the quantiles of the normal distribution for the shares of activations that become
 * 0, which are given in hundredths.
 */
void fs_hf_write_sparsity(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);

    fs_hf_begin_array(config, member->name);
    for (uint64_t i = 0; i < n_layer; i++) {
        const double quantile = fs_hf_float_at(hf, "activation_sparsity_scale", i,
                                               i < N_SPARSE_LAYERS ? QUANTILE_OF_95 : -INFINITY);
        const double share = round(50 * erfc(-quantile / sqrt(2))) / 100;

        fs_hf_element(config, &(struct gguf_value){.type = GGUF_FLOAT64, .f64 = share});
    }
    fs_hf_end_array(config);
}

void fs_hf_write_n_shared_kv(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    const uint64_t n_own = n_layer < N_OWN_KV_LAYERS ? n_layer : N_OWN_KV_LAYERS;

    fs_hf_member_unsigned(config, member->name,
                          fs_hf_number(config->hf, "attention.shared_kv_layers", n_layer - n_own));
}

static bool is_windowed(const struct fs_hf_model *hf, uint64_t layer)
{
    return fs_hf_number_at(hf, "attention.sliding_window_pattern", layer, 0) != 0;
}

/* Return the number of key heads of the first layer with a window, or without. */
static uint64_t n_head_kv_of_kind(const struct fs_hf_model *hf, bool has_window)
{
    const uint64_t n_layer = fs_hf_n_layer(hf);

    for (uint64_t i = 0; i < n_layer; i++) {
        if (is_windowed(hf, i) == has_window)
            return fs_hf_number_at(hf, "attention.head_count_kv", i, 0);
    }
    return fs_hf_number(hf, "attention.head_count_kv", 0);
}

/* Layers without a window have wider heads, and may have fewer that share keys as values. */
void fs_hf_write_gemma4_heads(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf);
    const uint64_t n_ff = fs_hf_number_at(hf, "feed_forward_length", 0, 0);
    bool shares = false;

    for (uint64_t i = 0; i < n_layer; i++) {
        if (!fs_hf_layer_has(hf, i, "blk.%.attn_k.weight") ||
            fs_hf_layer_has(hf, i, "blk.%.attn_v.weight"))
            continue;
        shares = true;
        if (is_windowed(hf, i))
            fs_hf_problem(config,
                          "it has no tensor \"blk.%" PRIu64 ".attn_v.weight\", and only layers "
                          "without a window use keys as values",
                          i);
    }
    fs_hf_member_unsigned(config, "num_key_value_heads", n_head_kv_of_kind(hf, true));
    if (shares)
        fs_hf_member_unsigned(config, "num_global_key_value_heads", n_head_kv_of_kind(hf, false));
    fs_hf_member_bool(config, "attention_k_eq_v", shares);
    fs_hf_member_unsigned(config, "intermediate_size", n_ff);
    fs_hf_member_bool(config, "use_double_wide_mlp",
                      fs_hf_number(hf, "feed_forward_length", 0) > n_ff);
}

/* ---- GPT-2 and models of its time ---- */

/* The converter of StarCoder writes 1 as head_count_kv, whatever the number is. */
void fs_hf_write_multi_query(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct gguf_tensor *qkv = fs_hf_tensor(config->hf, "blk.0.attn_qkv.weight");

    fs_hf_member_bool(config, member->name, !qkv || qkv->ne[1] != 3 * qkv->ne[0]);
}

/* Falcon 40B and later have several heads of keys and values; multi_query then has no effect. */
void fs_hf_write_decoder(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const bool has_two_norms = fs_hf_any_tensor(config->hf, "blk.%.attn_norm_2");
    const bool is_new = fs_hf_n_head_kv(config->hf, 0) > 1 || has_two_norms;

    fs_hf_member_bool(config, member->name, is_new);
    if (is_new)
        fs_hf_member_unsigned(config, "num_ln_in_parallel_attn", has_two_norms ? 2 : 1);
}

void fs_hf_write_mpt_attention(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const double alibi = fs_hf_float(config->hf, "attention.max_alibi_bias", 0);

    fs_hf_begin_object(config, member->name);
    fs_hf_member_bool(config, "alibi", alibi > 0);
    fs_hf_member_unsigned(config, "alibi_bias_max", (uint64_t)alibi);
    fs_hf_member_key(config, "clip_qkv", "attention.clamp_kqv");
    fs_hf_end_object(config);
}

void fs_hf_write_dbrx_parts(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;

    fs_hf_begin_object(config, "attn_config");
    fs_hf_member_unsigned(config, "kv_n_heads", fs_hf_n_head_kv(hf, 0));
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base", 10000));
    fs_hf_member_key(config, "clip_qkv", "attention.clamp_kqv");
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "ffn_config");
    fs_hf_member_unsigned(config, "hidden_size", fs_hf_number(hf, "embedding_length", 0));
    fs_hf_member_unsigned(config, "ffn_hidden_size", fs_hf_number(hf, "feed_forward_length", 0));
    fs_hf_member_unsigned(config, "moe_num_experts", fs_hf_number(hf, "expert_count", 0));
    fs_hf_member_unsigned(config, "moe_top_k", fs_hf_number(hf, "expert_used_count", 0));
    fs_hf_end_object(config);
}

/* ---- latent attention ---- */

/* The widths of a head: its rotated part, the rest, and its value. */
void fs_hf_write_latent_widths(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t key =
        fs_hf_number(hf, "attention.key_length_mla", fs_hf_number(hf, "attention.key_length", 0));
    const struct gguf_tensor *output = fs_hf_any_tensor(hf, "blk.%.attn_output.weight");
    const uint64_t n_head = fs_hf_n_head(hf, 0);
    const uint64_t value = fs_hf_number(hf, "attention.value_length_mla",
                                        output && n_head > 0 ? output->ne[0] / n_head : 0);
    const uint64_t rotated = fs_hf_number(hf, "rope.dimension_count", 0);

    if (fs_hf_any_tensor(hf, "blk.%.attn_k_b") && !fs_hf_key(hf, "attention.key_length_mla"))
        fs_hf_problem(config, "it has no key attention.key_length_mla");
    if (rotated == 0 || key <= rotated)
        fs_hf_problem(config, "its keys attention.key_length_mla and rope.dimension_count do not "
                              "give the widths of a head");
    fs_hf_member_unsigned(config, "qk_rope_head_dim", rotated);
    fs_hf_member_unsigned(config, "qk_nope_head_dim", key - rotated);
    fs_hf_member_unsigned(config, "v_head_dim", value);
    fs_hf_member_unsigned(config, "num_key_value_heads", n_head);
}

void fs_hf_write_choice_method(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    fs_hf_member_json(config, member->name,
                      fs_hf_number(config->hf, "expert_group_count", 1) > 1
                          ? "'group_limited_greedy'"
                          : "'greedy'");
}

/* ---- hybrids ---- */

/* MiMo 2: layer 0 has no window. Layers with a window have twice as many heads of keys. */
void fs_hf_write_full_n_head_kv(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const uint64_t n_layer = fs_hf_n_layer(hf), n_head_kv = fs_hf_n_head_kv(hf, 0);

    for (uint64_t i = 0; i < n_layer; i++) {
        if (fs_hf_n_head_kv(hf, i) != n_head_kv * (is_windowed(hf, i) ? 2 : 1))
            fs_hf_problem(config, "its windowed layers do not have twice as many heads of keys");
    }
    fs_hf_member_unsigned(config, member->name, n_head_kv);
}

void fs_hf_write_granite_rotation(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    const struct fs_hf_model *hf = config->hf;
    const bool is_rotated = fs_hf_bool(hf, "rope.scaling.finetuned", false) ||
                            !fs_hf_any_tensor(hf, "blk.%.ssm_in.weight");

    for (uint64_t i = 0; i < fs_hf_n_layer(hf) && fs_hf_number(hf, "expert_count", 0) > 0; i++) {
        if (!fs_hf_layer_has(hf, i, "blk.%.ffn_gate_inp.weight"))
            fs_hf_problem(config,
                          "layer %" PRIu64 " has no experts, as its class has in all layers", i);
    }
    fs_hf_member_json(config, member->name, is_rotated ? "'rope'" : "null");
    fs_hf_member_unsigned(config, "shared_intermediate_size",
                          fs_hf_number(hf, "expert_shared_feed_forward_length",
                                       fs_hf_number(hf, "feed_forward_length", 0)));
}

/* Write the period and the offset of the layers that have a tensor. */
static void write_period(struct fs_hf_config *config, const char *period, const char *offset,
                         const char *pattern)
{
    const uint64_t n_layer = fs_hf_n_layer(config->hf);
    uint64_t first = 0, second;

    while (first < n_layer && !fs_hf_layer_has(config->hf, first, pattern))
        first++;
    second = first + 1;
    while (second < n_layer && !fs_hf_layer_has(config->hf, second, pattern))
        second++;
    for (uint64_t i = second; second < n_layer && i < n_layer; i++) {
        if (fs_hf_layer_has(config->hf, i, pattern) != ((i - first) % (second - first) == 0))
            fs_hf_problem(config, "%s is not the same in all layers, see layer %" PRIu64, period,
                          i);
    }
    /* The offset must be less than the period. */
    fs_hf_member_unsigned(config, period,
                          second < n_layer ? second - first : n_layer + (first == n_layer));
    fs_hf_member_unsigned(config, offset, first);
}

void fs_hf_write_jamba_layers(struct fs_hf_config *config, const struct fs_hf_member *member)
{
    write_period(config, "attn_layer_period", "attn_layer_offset", "blk.%.attn_q.weight");
    write_period(config, "expert_layer_period", "expert_layer_offset", "blk.%.ffn_gate_inp.weight");
}
