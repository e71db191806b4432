/* Checkpoints of GPT-2 and of other models of its time, whose names and layouts differ. */
#include "fs/tree/hf/hf_rows.h"

/* ---- gpt2, starcoder, gptj ---- */

/* Converters write 4 · n_embd as feed_forward_length, whatever the size is. */
static const struct fs_hf_entry gpt_config[] = {
    KEY("n_embd", "embedding_length"),
    CALL("n_layer", fs_hf_write_n_layer),
    KEY("n_head", "attention.head_count"),
    KEY("n_positions", "context_length"),
    KEY("n_ctx", "context_length"), /* for llama.cpp's converter */
    COUNT_OF("n_inner", "blk.0.ffn_up.weight", fs_hf_write_rows),
    KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
    END_OF_CONFIG,
};

/* The converter writes 1 as head_count_kv, whatever the number is. */
static void write_multi_query(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_tensor *qkv = fs_hf_tensor(config->hf, "blk.0.attn_qkv.weight");

    fs_hf_member_bool(config, entry->name, !qkv || qkv->ne[1] != 3 * qkv->ne[0]);
}

/* ---- bloom ---- */

/* ---- gptneox ---- */

static const struct fs_hf_entry gptneox_config[] = {
    COMMON_SIZES,
    KEY("intermediate_size", "feed_forward_length"),
    LAYER_NORM,
    KEY_OR("use_parallel_residual", "use_parallel_residual", "true"),
    HAS("attention_bias", "blk.%.attn_output.bias"),
    CALL("rotary_pct", fs_hf_write_rope),
    END_OF_CONFIG,
};

/* ---- falcon ---- */

static bool has_two_norms(const struct fs_hf_model *hf)
{
    return fs_hf_any_tensor(hf, "blk.%.attn_norm_2");
}

/* Falcon 40B and later have several heads of keys and values; multi_query then has no effect. */
static void write_decoder(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const bool is_new = fs_hf_n_head_kv(config->hf, 0) > 1 || has_two_norms(config->hf);

    fs_hf_member_bool(config, entry->name, is_new);
    if (is_new)
        fs_hf_member_unsigned(config, "num_ln_in_parallel_attn", has_two_norms(config->hf) ? 2 : 1);
}

static const struct fs_hf_entry falcon_config[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("ffn_hidden_size", "blk.0.ffn_up.weight", fs_hf_write_rows),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_kv_heads", fs_hf_write_n_head_kv),
    KEY_OR("max_position_embeddings", "context_length", "2048"),
    KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
    JSON("alibi", "false"),
    JSON("multi_query", "true"),
    JSON("parallel_attn", "true"),
    CALL("new_decoder_architecture", write_decoder),
    HAS_BIASES("bias", "blk.%.attn_qkv.bias", "attn_qkv attn_output ffn_up ffn_down"),
    ROPE,
    END_OF_CONFIG,
};

/* ---- mpt, dbrx ---- */

static void write_mpt_attention(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const double alibi = fs_hf_float(config->hf, "attention.max_alibi_bias", 0);
    const struct gguf_key *clamp = fs_hf_key(config->hf, "attention.clamp_kqv");

    fs_hf_begin_object(config, entry->name);
    fs_hf_member_bool(config, "alibi", alibi > 0);
    fs_hf_member_unsigned(config, "alibi_bias_max", (uint64_t)alibi);
    if (clamp)
        fs_hf_member_key(config, "clip_qkv", clamp);
    fs_hf_end_object(config);
}

static const struct fs_hf_entry mpt_config[] = {
    KEY("d_model", "embedding_length"),
    CALL("n_layers", fs_hf_write_n_layer),
    KEY("n_heads", "attention.head_count"),
    KEY("max_seq_len", "context_length"),
    KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
    CALL("attn_config", write_mpt_attention),
    END_OF_CONFIG,
};

static void write_dbrx_parts(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct fs_hf_model *hf = config->hf;
    const struct gguf_key *clamp = fs_hf_key(hf, "attention.clamp_kqv");

    (void)entry;
    fs_hf_begin_object(config, "attn_config");
    fs_hf_member_unsigned(config, "kv_n_heads", fs_hf_n_head_kv(hf, 0));
    fs_hf_member_float(config, "rope_theta", fs_hf_float(hf, "rope.freq_base", 10000));
    if (clamp)
        fs_hf_member_key(config, "clip_qkv", clamp);
    fs_hf_end_object(config);
    fs_hf_begin_object(config, "ffn_config");
    fs_hf_member_unsigned(config, "hidden_size", fs_hf_number(hf, "embedding_length", 0));
    fs_hf_member_unsigned(config, "ffn_hidden_size", fs_hf_number(hf, "feed_forward_length", 0));
    fs_hf_member_unsigned(config, "moe_num_experts", fs_hf_number(hf, "expert_count", 0));
    fs_hf_member_unsigned(config, "moe_top_k", fs_hf_number(hf, "expert_used_count", 0));
    fs_hf_end_object(config);
}

static const struct fs_hf_entry dbrx_config[] = {
    KEY("d_model", "embedding_length"),
    CALL("n_layers", fs_hf_write_n_layer),
    KEY("n_heads", "attention.head_count"),
    KEY("max_seq_len", "context_length"),
    CALL("dbrx", write_dbrx_parts),
    ROPE,
    END_OF_CONFIG,
};

/* ---- phi2 ---- */

const struct fs_hf_row fs_hf_rows_gpt[] = {
    {"gpt2", "GPT2LMHeadModel", "gpt2", gguf_naming_gpt2, .needs = "blk.%.attn_qkv.bias",
     .config = CONFIG(TABLE(gpt_config), JSON("activation_function", "\"gelu_new\""))},
    {"starcoder", "GPTBigCodeForCausalLM", "gpt_bigcode", gguf_naming_gpt_bigcode,
     .needs = "blk.%.attn_qkv.bias",
     .config = CONFIG(TABLE(gpt_config), JSON("activation_function", "\"gelu_pytorch_tanh\""),
                      CALL("multi_query", write_multi_query))},
    {"gptj", "GPTJForCausalLM", "gptj", gguf_naming_gptj,
     .config = CONFIG(TABLE(gpt_config), JSON("activation_function", "\"gelu_new\""),
                      KEY("rotary_dim", "rope.dimension_count"))},
    {"bloom", "BloomForCausalLM", "bloom", gguf_naming_bloom, .has_layout = true,
     .needs = "blk.%.attn_qkv.bias",
     .config = CONFIG(KEY("hidden_size", "embedding_length"), CALL("n_layer", fs_hf_write_n_layer),
                      KEY("n_head", "attention.head_count"),
                      KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
                      KEY_OR("seq_length", "context_length", ""))},
    {"gptneox", "GPTNeoXForCausalLM", "gpt_neox", gguf_naming_gpt_neox, .has_layout = true,
     .config = CONFIG(TABLE(gptneox_config))},
    {"falcon", "FalconForCausalLM", "falcon", gguf_naming_falcon, .applies = has_two_norms,
     .has_layout = true, .config = CONFIG(TABLE(falcon_config))},
    {"falcon", "FalconForCausalLM", "falcon", gguf_naming_falcon_plain, .has_layout = true,
     .config = CONFIG(TABLE(falcon_config))},
    {"mpt", "MptForCausalLM", "mpt", gguf_naming_mpt, .config = CONFIG(TABLE(mpt_config))},
    {"dbrx", "DbrxForCausalLM", "dbrx", gguf_naming_dbrx, .config = CONFIG(TABLE(dbrx_config))},
    {"phi2", "PhiForCausalLM", "phi", gguf_naming_phi, .needs = "blk.%.attn_q.bias",
     .config = CONFIG(
         COMMON_SIZES, COUNT_OF("intermediate_size", "blk.%.ffn_up.weight", fs_hf_write_rows),
         CALL("num_key_value_heads", fs_hf_write_n_head_kv), JSON("hidden_act", "\"gelu_new\""),
         JSON("qk_layernorm", "false"), LAYER_NORM, PARTIAL_ROPE)},
    {.architecture = NULL},
};
