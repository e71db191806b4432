/* Checkpoints of GPT-2 and of other models of its time, whose names and layouts differ. */
#include "fs/tree/hf/hf_rows.h"

/* ---- gpt2, starcoder, gptj ---- */

static const struct fs_hf_rule gpt_rules[] = {
    TENSOR("token_embd", "transformer.wte"),
    TENSOR("position_embd", "transformer.wpe"),
    TENSOR("output_norm", "transformer.ln_f"),
    TENSOR("output", "lm_head"),
    TENSOR("blk.%.attn_norm", "transformer.h.%.ln_1"),
    TENSOR("blk.%.ffn_norm", "transformer.h.%.ln_2"),
    END_OF_RULES,
};

static const struct fs_hf_rule gpt2_rules[] = {
    ARRANGED("blk.%.attn_qkv", "transformer.h.%.attn.c_attn", fs_hf_transposed),
    ARRANGED("blk.%.attn_output", "transformer.h.%.attn.c_proj", fs_hf_transposed),
    ARRANGED("blk.%.ffn_up", "transformer.h.%.mlp.c_fc", fs_hf_transposed),
    ARRANGED("blk.%.ffn_down", "transformer.h.%.mlp.c_proj", fs_hf_transposed),
    END_OF_RULES,
};

static const struct fs_hf_rule starcoder_rules[] = {
    TENSOR("blk.%.attn_qkv", "transformer.h.%.attn.c_attn"),
    TENSOR("blk.%.attn_output", "transformer.h.%.attn.c_proj"),
    TENSOR("blk.%.ffn_up", "transformer.h.%.mlp.c_fc"),
    TENSOR("blk.%.ffn_down", "transformer.h.%.mlp.c_proj"),
    END_OF_RULES,
};

static const struct fs_hf_rule gptj_rules[] = {
    TENSOR("blk.%.attn_q", "transformer.h.%.attn.q_proj"),
    TENSOR("blk.%.attn_k", "transformer.h.%.attn.k_proj"),
    TENSOR("blk.%.attn_v", "transformer.h.%.attn.v_proj"),
    TENSOR("blk.%.attn_output", "transformer.h.%.attn.out_proj"),
    TENSOR("blk.%.ffn_up", "transformer.h.%.mlp.fc_in"),
    TENSOR("blk.%.ffn_down", "transformer.h.%.mlp.fc_out"),
    END_OF_RULES,
};

/* Converters write 4 · n_embd as feed_forward_length, whatever the size is. */
static const struct fs_hf_entry gpt_config[] = {
    KEY("n_embd", "embedding_length"),
    CALL("n_layer", fs_hf_write_n_layer),
    KEY("n_head", "attention.head_count"),
    KEY("n_positions", "context_length"),
    COUNT_OF("n_inner", "blk.0.ffn_up.weight", fs_hf_write_rows),
    KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
    END_OF_CONFIG,
};

static const struct fs_hf_entry gpt2_config[] = {
    JSON("activation_function", "\"gelu_new\""),
    END_OF_CONFIG,
};

static const struct fs_hf_entry gptj_config[] = {
    JSON("activation_function", "\"gelu_new\""),
    KEY("rotary_dim", "rope.dimension_count"),
    END_OF_CONFIG,
};

/* The converter writes 1 as head_count_kv, whatever the number is. */
static void write_multi_query(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_tensor *qkv = fs_hf_tensor(config->hf, "blk.0.attn_qkv.weight");

    fs_hf_member_bool(config, entry->name, !qkv || qkv->ne[1] != 3 * qkv->ne[0]);
}

static const struct fs_hf_entry starcoder_config[] = {
    JSON("activation_function", "\"gelu_pytorch_tanh\""),
    CALL("multi_query", write_multi_query),
    END_OF_CONFIG,
};

/* ---- bloom ---- */

static const struct fs_hf_rule bloom_rules[] = {
    TENSOR("token_embd", "transformer.word_embeddings"),
    TENSOR("token_embd_norm", "transformer.word_embeddings_layernorm"),
    TENSOR("output_norm", "transformer.ln_f"),
    TENSOR("output", "lm_head"),
    TENSOR("blk.%.attn_norm", "transformer.h.%.input_layernorm"),
    TENSOR("blk.%.ffn_norm", "transformer.h.%.post_attention_layernorm"),
    ARRANGED("blk.%.attn_qkv", "transformer.h.%.self_attention.query_key_value", fs_hf_qkv_by_head),
    TENSOR("blk.%.attn_output", "transformer.h.%.self_attention.dense"),
    TENSOR("blk.%.ffn_up", "transformer.h.%.mlp.dense_h_to_4h"),
    TENSOR("blk.%.ffn_down", "transformer.h.%.mlp.dense_4h_to_h"),
    END_OF_RULES,
};

static const struct fs_hf_entry bloom_config[] = {
    KEY("hidden_size", "embedding_length"),
    CALL("n_layer", fs_hf_write_n_layer),
    KEY("n_head", "attention.head_count"),
    KEY("layer_norm_epsilon", "attention.layer_norm_epsilon"),
    KEY_OR("seq_length", "context_length", ""),
    END_OF_CONFIG,
};

/* ---- gptneox ---- */

static const struct fs_hf_rule gptneox_rules[] = {
    TENSOR("token_embd", "gpt_neox.embed_in"),
    TENSOR("output_norm", "gpt_neox.final_layer_norm"),
    TENSOR("output", "embed_out"),
    TENSOR("blk.%.attn_norm", "gpt_neox.layers.%.input_layernorm"),
    TENSOR("blk.%.ffn_norm", "gpt_neox.layers.%.post_attention_layernorm"),
    ARRANGED("blk.%.attn_qkv", "gpt_neox.layers.%.attention.query_key_value", fs_hf_qkv_by_head),
    TENSOR("blk.%.attn_output", "gpt_neox.layers.%.attention.dense"),
    TENSOR("blk.%.ffn_up", "gpt_neox.layers.%.mlp.dense_h_to_4h"),
    TENSOR("blk.%.ffn_down", "gpt_neox.layers.%.mlp.dense_4h_to_h"),
    END_OF_RULES,
};

static const struct fs_hf_entry gptneox_config[] = {
    KEY("hidden_size", "embedding_length"),
    KEY("intermediate_size", "feed_forward_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    KEY("max_position_embeddings", "context_length"),
    KEY("layer_norm_eps", "attention.layer_norm_epsilon"),
    KEY_OR("use_parallel_residual", "use_parallel_residual", "true"),
    HAS("attention_bias", "blk.%.attn_output.bias"),
    CALL("rotary_pct", fs_hf_write_rope),
    END_OF_CONFIG,
};

/* ---- falcon ---- */

static const struct fs_hf_rule falcon_rules[] = {
    TENSOR("token_embd", "transformer.word_embeddings"),
    TENSOR("output_norm", "transformer.ln_f"),
    TENSOR("output", "lm_head"),
    ARRANGED("blk.%.attn_qkv", "transformer.h.%.self_attention.query_key_value",
             fs_hf_qkv_by_group),
    TENSOR("blk.%.attn_output", "transformer.h.%.self_attention.dense"),
    TENSOR("blk.%.ffn_up", "transformer.h.%.mlp.dense_h_to_4h"),
    TENSOR("blk.%.ffn_down", "transformer.h.%.mlp.dense_4h_to_h"),
    END_OF_RULES,
};

static const struct fs_hf_rule falcon_one_norm[] = {
    TENSOR("blk.%.attn_norm", "transformer.h.%.input_layernorm"),
    END_OF_RULES,
};

static const struct fs_hf_rule falcon_two_norms[] = {
    TENSOR("blk.%.attn_norm_2", "transformer.h.%.ln_attn"),
    TENSOR("blk.%.attn_norm", "transformer.h.%.ln_mlp"),
    END_OF_RULES,
};

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
    HAS("bias", "blk.%.attn_qkv.bias"),
    CALL("rope", fs_hf_write_rope),
    END_OF_CONFIG,
};

/* ---- mpt, dbrx ---- */

static const struct fs_hf_rule mpt_rules[] = {
    TENSOR("token_embd", "transformer.wte"),
    TENSOR("output_norm", "transformer.norm_f"),
    TENSOR("output", "lm_head"),
    TENSOR("blk.%.attn_norm", "transformer.blocks.%.norm_1"),
    TENSOR("blk.%.ffn_norm", "transformer.blocks.%.norm_2"),
    TENSOR("blk.%.attn_qkv", "transformer.blocks.%.attn.Wqkv"),
    TENSOR("blk.%.attn_output", "transformer.blocks.%.attn.out_proj"),
    TENSOR("blk.%.ffn_up", "transformer.blocks.%.ffn.up_proj"),
    TENSOR("blk.%.ffn_down", "transformer.blocks.%.ffn.down_proj"),
    END_OF_RULES,
};

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

static const struct fs_hf_rule dbrx_rules[] = {
    TENSOR("token_embd", "transformer.wte"),
    TENSOR("output_norm", "transformer.norm_f"),
    TENSOR("output", "lm_head"),
    TENSOR("blk.%.attn_norm", "transformer.blocks.%.norm_attn_norm.norm_1"),
    TENSOR("blk.%.attn_output_norm", "transformer.blocks.%.norm_attn_norm.norm_2"),
    TENSOR("blk.%.attn_qkv", "transformer.blocks.%.norm_attn_norm.attn.Wqkv"),
    TENSOR("blk.%.attn_output", "transformer.blocks.%.norm_attn_norm.attn.out_proj"),
    TENSOR("blk.%.ffn_gate_inp", "transformer.blocks.%.ffn.router.layer"),
    ARRANGED("blk.%.ffn_gate_exps.weight", "transformer.blocks.%.ffn.experts.mlp.w1",
             fs_hf_joined_rows),
    ARRANGED("blk.%.ffn_up_exps.weight", "transformer.blocks.%.ffn.experts.mlp.v1",
             fs_hf_joined_rows),
    ARRANGED("blk.%.ffn_down_exps.weight", "transformer.blocks.%.ffn.experts.mlp.w2",
             fs_hf_joined_columns),
    END_OF_RULES,
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
    CALL("rope", fs_hf_write_rope),
    END_OF_CONFIG,
};

/* ---- phi2 ---- */

static const struct fs_hf_rule phi2_rules[] = {
    TENSOR("output_norm", "model.final_layernorm"),
    TENSOR("blk.%.attn_output", "model.layers.%.self_attn.dense"),
    TENSOR("blk.%.ffn_up", "model.layers.%.mlp.fc1"),
    TENSOR("blk.%.ffn_down", "model.layers.%.mlp.fc2"),
    END_OF_RULES,
};

static const struct fs_hf_entry phi2_config[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("intermediate_size", "blk.%.ffn_up.weight", fs_hf_write_rows),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    JSON("hidden_act", "\"gelu_new\""),
    JSON("qk_layernorm", "false"),
    END_OF_CONFIG,
};

const struct fs_hf_row fs_hf_rows_gpt[] = {
    {.architecture = "gpt2",
     .class_name = "GPT2LMHeadModel",
     .model_type = "gpt2",
     .needs = {"blk.%.attn_norm.bias", "blk.%.attn_qkv.bias", "blk.%.attn_output.bias",
               "blk.%.ffn_up.bias", "position_embd.weight"},
     .rules = {gpt_rules, gpt2_rules},
     .config = {gpt_config, gpt2_config}},
    {.architecture = "starcoder",
     .class_name = "GPTBigCodeForCausalLM",
     .model_type = "gpt_bigcode",
     .needs = {"blk.%.attn_norm.bias", "blk.%.attn_qkv.bias", "blk.%.attn_output.bias",
               "blk.%.ffn_up.bias", "position_embd.weight"},
     .rules = {gpt_rules, starcoder_rules},
     .config = {gpt_config, starcoder_config}},
    {.architecture = "gptj",
     .class_name = "GPTJForCausalLM",
     .model_type = "gptj",
     .needs = {"blk.%.attn_norm.bias", "blk.%.ffn_up.bias", "output.bias"},
     .rules = {gpt_rules, gptj_rules},
     .config = {gpt_config, gptj_config}},
    {.architecture = "bloom",
     .class_name = "BloomForCausalLM",
     .model_type = "bloom",
     .needs = {"blk.%.attn_norm.bias", "blk.%.attn_qkv.bias", "blk.%.attn_output.bias",
               "blk.%.ffn_up.bias", "token_embd_norm.weight"},
     .rules = {bloom_rules},
     .config = {bloom_config}},
    {.architecture = "gptneox",
     .class_name = "GPTNeoXForCausalLM",
     .model_type = "gpt_neox",
     .needs = {"blk.%.attn_norm.bias", "blk.%.ffn_up.bias"},
     .rules = {gptneox_rules},
     .config = {gptneox_config}},
    {.architecture = "falcon",
     .applies = has_two_norms,
     .class_name = "FalconForCausalLM",
     .model_type = "falcon",
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {falcon_two_norms, falcon_rules},
     .config = {falcon_config}},
    {.architecture = "falcon",
     .class_name = "FalconForCausalLM",
     .model_type = "falcon",
     .needs = {"blk.%.attn_norm.bias"},
     .rules = {falcon_one_norm, falcon_rules},
     .config = {falcon_config}},
    {.architecture = "mpt",
     .class_name = "MptForCausalLM",
     .model_type = "mpt",
     .rules = {mpt_rules},
     .config = {mpt_config}},
    {.architecture = "dbrx",
     .class_name = "DbrxForCausalLM",
     .model_type = "dbrx",
     .rules = {dbrx_rules},
     .config = {dbrx_config}},
    {.architecture = "phi2",
     .class_name = "PhiForCausalLM",
     .model_type = "phi",
     .needs = {"blk.%.attn_norm.bias", "blk.%.ffn_up.bias", "blk.%.attn_output.bias",
               "blk.%.attn_q.bias", "output.bias"},
     .rules = {phi2_rules, fs_hf_embedding_rules, fs_hf_norm_rules, fs_hf_attention_rules},
     .config = {phi2_config, fs_hf_layer_norm, fs_hf_partial_rope}},
    {.architecture = NULL},
};
