/* Namings of GPT-2 and of models of its time. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename gpt_names[] = {
    NAME("token_embd", "transformer.wte"),
    NAME("position_embd", "transformer.wpe"),
    NAME("output_norm", "transformer.ln_f"),
    NAME("output", "lm_head"),
    NAME("blk.%.attn_norm", "transformer.h.%.ln_1"),
    NAME("blk.%.ffn_norm", "transformer.h.%.ln_2"),
    END_OF_NAMES,
};

static const struct gguf_rename gpt2_names[] = {
    ORDERED("blk.%.attn_qkv", "transformer.h.%.attn.c_attn", GGUF_TRANSPOSED),
    ORDERED("blk.%.attn_output", "transformer.h.%.attn.c_proj", GGUF_TRANSPOSED),
    ORDERED("blk.%.ffn_up", "transformer.h.%.mlp.c_fc", GGUF_TRANSPOSED),
    ORDERED("blk.%.ffn_down", "transformer.h.%.mlp.c_proj", GGUF_TRANSPOSED),
    END_OF_NAMES,
};

static const struct gguf_rename starcoder_names[] = {
    NAME("blk.%.attn_qkv", "transformer.h.%.attn.c_attn"),
    NAME("blk.%.attn_output", "transformer.h.%.attn.c_proj"),
    NAME("blk.%.ffn_up", "transformer.h.%.mlp.c_fc"),
    NAME("blk.%.ffn_down", "transformer.h.%.mlp.c_proj"),
    END_OF_NAMES,
};

static const struct gguf_rename gptj_names[] = {
    NAME("blk.%.attn_q", "transformer.h.%.attn.q_proj"),
    NAME("blk.%.attn_k", "transformer.h.%.attn.k_proj"),
    NAME("blk.%.attn_v", "transformer.h.%.attn.v_proj"),
    NAME("blk.%.attn_output", "transformer.h.%.attn.out_proj"),
    NAME("blk.%.ffn_up", "transformer.h.%.mlp.fc_in"),
    NAME("blk.%.ffn_down", "transformer.h.%.mlp.fc_out"),
    END_OF_NAMES,
};

static const struct gguf_rename bloom_names[] = {
    NAME("token_embd", "transformer.word_embeddings"),
    NAME("token_embd_norm", "transformer.word_embeddings_layernorm"),
    NAME("output_norm", "transformer.ln_f"),
    NAME("output", "lm_head"),
    NAME("blk.%.attn_norm", "transformer.h.%.input_layernorm"),
    NAME("blk.%.ffn_norm", "transformer.h.%.post_attention_layernorm"),
    ORDERED("blk.%.attn_qkv", "transformer.h.%.self_attention.query_key_value", GGUF_QKV_BY_HEAD),
    NAME("blk.%.attn_output", "transformer.h.%.self_attention.dense"),
    NAME("blk.%.ffn_up", "transformer.h.%.mlp.dense_h_to_4h"),
    NAME("blk.%.ffn_down", "transformer.h.%.mlp.dense_4h_to_h"),
    END_OF_NAMES,
};

static const struct gguf_rename gptneox_names[] = {
    NAME("token_embd", "gpt_neox.embed_in"),
    NAME("output_norm", "gpt_neox.final_layer_norm"),
    NAME("output", "embed_out"),
    NAME("blk.%.attn_norm", "gpt_neox.layers.%.input_layernorm"),
    NAME("blk.%.ffn_norm", "gpt_neox.layers.%.post_attention_layernorm"),
    ORDERED("blk.%.attn_qkv", "gpt_neox.layers.%.attention.query_key_value", GGUF_QKV_BY_HEAD),
    NAME("blk.%.attn_output", "gpt_neox.layers.%.attention.dense"),
    NAME("blk.%.ffn_up", "gpt_neox.layers.%.mlp.dense_h_to_4h"),
    NAME("blk.%.ffn_down", "gpt_neox.layers.%.mlp.dense_4h_to_h"),
    END_OF_NAMES,
};

static const struct gguf_rename falcon_names[] = {
    NAME("token_embd", "transformer.word_embeddings"),
    NAME("output_norm", "transformer.ln_f"),
    NAME("output", "lm_head"),
    ORDERED("blk.%.attn_qkv", "transformer.h.%.self_attention.query_key_value", GGUF_QKV_BY_GROUP),
    NAME("blk.%.attn_output", "transformer.h.%.self_attention.dense"),
    NAME("blk.%.ffn_up", "transformer.h.%.mlp.dense_h_to_4h"),
    NAME("blk.%.ffn_down", "transformer.h.%.mlp.dense_4h_to_h"),
    END_OF_NAMES,
};

static const struct gguf_rename falcon_two_norms[] = {
    NAME("blk.%.attn_norm_2", "transformer.h.%.ln_attn"),
    NAME("blk.%.attn_norm", "transformer.h.%.ln_mlp"),
    END_OF_NAMES,
};

static const struct gguf_rename mpt_names[] = {
    NAME("token_embd", "transformer.wte"),
    NAME("output_norm", "transformer.norm_f"),
    NAME("output", "lm_head"),
    NAME("blk.%.attn_norm", "transformer.blocks.%.norm_1"),
    NAME("blk.%.ffn_norm", "transformer.blocks.%.norm_2"),
    NAME("blk.%.attn_qkv", "transformer.blocks.%.attn.Wqkv"),
    NAME("blk.%.attn_output", "transformer.blocks.%.attn.out_proj"),
    NAME("blk.%.ffn_up", "transformer.blocks.%.ffn.up_proj"),
    NAME("blk.%.ffn_down", "transformer.blocks.%.ffn.down_proj"),
    END_OF_NAMES,
};

static const struct gguf_rename dbrx_names[] = {
    NAME("token_embd", "transformer.wte"),
    NAME("output_norm", "transformer.norm_f"),
    NAME("output", "lm_head"),
    NAME("blk.%.attn_norm", "transformer.blocks.%.norm_attn_norm.norm_1"),
    NAME("blk.%.attn_output_norm", "transformer.blocks.%.norm_attn_norm.norm_2"),
    NAME("blk.%.attn_qkv", "transformer.blocks.%.norm_attn_norm.attn.Wqkv"),
    NAME("blk.%.attn_output", "transformer.blocks.%.norm_attn_norm.attn.out_proj"),
    NAME("blk.%.ffn_gate_inp", "transformer.blocks.%.ffn.router.layer"),
    ORDERED("blk.%.ffn_gate_exps.weight", "transformer.blocks.%.ffn.experts.mlp.w1", GGUF_BY_ROWS),
    ORDERED("blk.%.ffn_up_exps.weight", "transformer.blocks.%.ffn.experts.mlp.v1", GGUF_BY_ROWS),
    ORDERED("blk.%.ffn_down_exps.weight", "transformer.blocks.%.ffn.experts.mlp.w2",
            GGUF_BY_COLUMNS),
    END_OF_NAMES,
};

static const struct gguf_rename phi2_names[] = {
    NAME("output_norm", "model.final_layernorm"),
    NAME("blk.%.attn_output", "model.layers.%.self_attn.dense"),
    NAME("blk.%.ffn_up", "model.layers.%.mlp.fc1"),
    NAME("blk.%.ffn_down", "model.layers.%.mlp.fc2"),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_gpt2 = {{gpt_names, gpt2_names}};
const struct gguf_naming gguf_naming_gpt_bigcode = {{gpt_names, starcoder_names}};
const struct gguf_naming gguf_naming_gptj = {{gpt_names, gptj_names}};
const struct gguf_naming gguf_naming_bloom = {{bloom_names}};
const struct gguf_naming gguf_naming_gpt_neox = {{gptneox_names}};
const struct gguf_naming gguf_naming_falcon = {{falcon_two_norms, falcon_names}};
const struct gguf_naming gguf_naming_falcon_plain = {
    {ONE_NAME("blk.%.attn_norm", "transformer.h.%.input_layernorm"), falcon_names}};
const struct gguf_naming gguf_naming_mpt = {{mpt_names}};
const struct gguf_naming gguf_naming_dbrx = {{dbrx_names}};
const struct gguf_naming gguf_naming_phi = {
    {phi2_names, gguf_names_embedding, gguf_names_norm, gguf_names_attention}};
