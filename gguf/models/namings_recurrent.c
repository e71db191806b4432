/* Namings of Mamba, and of hybrids of it and attention. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename mamba_names[] = {
    NAME("token_embd", "backbone.embeddings"),
    NAME("output_norm", "backbone.norm_f"),
    NAME("output", "lm_head"),
    NAME("blk.%.attn_norm", "backbone.layers.%.norm"),
    NAME("blk.%.ssm_in", "backbone.layers.%.mixer.in_proj"),
    NAME("blk.%.ssm_out", "backbone.layers.%.mixer.out_proj"),
    ORDERED("blk.%.ssm_conv1d.weight", "backbone.layers.%.mixer.conv1d.weight", GGUF_NO_MIDDLE),
    NAME("blk.%.ssm_conv1d.bias", "backbone.layers.%.mixer.conv1d.bias"),
    END_OF_NAMES,
};

static const struct gguf_rename mamba1_names[] = {
    MINUS_EXP("blk.%.ssm_a", "backbone.layers.%.mixer.A_log", GGUF_SAME_ORDER),
    NAME("blk.%.ssm_d", "backbone.layers.%.mixer.D"),
    NAME("blk.%.ssm_x", "backbone.layers.%.mixer.x_proj"),
    NAME("blk.%.ssm_dt", "backbone.layers.%.mixer.dt_proj"),
    END_OF_NAMES,
};

static const struct gguf_rename mamba2_names[] = {
    MINUS_EXP("blk.%.ssm_a", "backbone.layers.%.mixer.A_log", GGUF_FLAT),
    ORDERED("blk.%.ssm_d", "backbone.layers.%.mixer.D", GGUF_FLAT),
    NAME("blk.%.ssm_dt.bias", "backbone.layers.%.mixer.dt_bias"),
    ORDERED("blk.%.ssm_norm", "backbone.layers.%.mixer.norm", GGUF_FLAT),
    END_OF_NAMES,
};

static const struct gguf_rename hybrid_ssm_names[] = {
    NAME("blk.%.ssm_in", "model.layers.%.mamba.in_proj"),
    NAME("blk.%.ssm_out", "model.layers.%.mamba.out_proj"),
    ORDERED("blk.%.ssm_conv1d.weight", "model.layers.%.mamba.conv1d.weight", GGUF_NO_MIDDLE),
    NAME("blk.%.ssm_conv1d.bias", "model.layers.%.mamba.conv1d.bias"),
    END_OF_NAMES,
};

static const struct gguf_rename hybrid_mamba2_names[] = {
    MINUS_EXP("blk.%.ssm_a", "model.layers.%.mamba.A_log", GGUF_FLAT),
    ORDERED("blk.%.ssm_d", "model.layers.%.mamba.D", GGUF_FLAT),
    NAME("blk.%.ssm_dt.bias", "model.layers.%.mamba.dt_bias"),
    ORDERED("blk.%.ssm_norm", "model.layers.%.mamba.norm", GGUF_FLAT),
    END_OF_NAMES,
};

static const struct gguf_rename bamba_names[] = {
    NAME("output_norm", "model.final_layernorm"),
    NAME("blk.%.ffn_norm", "model.layers.%.pre_ff_layernorm"),
    GATED_NAMES("", "model.layers.%.feed_forward."),
    END_OF_NAMES,
};

/* Without experts, the shared feed-forward is the only one. */
static const struct gguf_rename granite_hybrid_names[] = {
    JOINED("blk.%.ffn_gate", "blk.%.ffn_up", "model.layers.%.shared_mlp.input_linear",
           GGUF_BOTH_ROWS),
    ELSEWHERE("blk.%.ffn_up"),
    NAME("blk.%.ffn_down", "model.layers.%.shared_mlp.output_linear"),
    END_OF_NAMES,
};

static const struct gguf_rename jamba_names[] = {
    MINUS_EXP("blk.%.ssm_a", "model.layers.%.mamba.A_log", GGUF_SAME_ORDER),
    NAME("blk.%.ssm_d", "model.layers.%.mamba.D"),
    NAME("blk.%.ssm_x", "model.layers.%.mamba.x_proj"),
    NAME("blk.%.ssm_dt", "model.layers.%.mamba.dt_proj"),
    NAME("blk.%.ssm_dt_norm", "model.layers.%.mamba.dt_layernorm"),
    NAME("blk.%.ssm_b_norm", "model.layers.%.mamba.b_layernorm"),
    NAME("blk.%.ssm_c_norm", "model.layers.%.mamba.c_layernorm"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.feed_forward.router"),
    GATED_NAMES("_exps", "model.layers.%.feed_forward.experts.#."),
    END_OF_NAMES,
};

static const struct gguf_rename falcon_h1_names[] = {
    NAME("blk.%.ffn_norm.weight", "model.layers.%.pre_ff_layernorm.weight"),
    NAME("blk.%.ffn_norm", "model.layers.%.pre_ff_layernorm.weight"),
    END_OF_NAMES,
};

static const struct gguf_rename nemotron_h_names[] = {
    ORDERED("blk.%.attn_q", "backbone.layers.%.mixer.q_proj", GGUF_PAIRS_Q),
    ORDERED("blk.%.attn_k", "backbone.layers.%.mixer.k_proj", GGUF_PAIRS_K),
    NAME("blk.%.attn_v", "backbone.layers.%.mixer.v_proj"),
    NAME("blk.%.attn_output", "backbone.layers.%.mixer.o_proj"),
    NAME("blk.%.ffn_up", "backbone.layers.%.mixer.up_proj"),
    NAME("blk.%.ffn_down", "backbone.layers.%.mixer.down_proj"),
    NAME("blk.%.ffn_gate_inp", "backbone.layers.%.mixer.gate"),
    NAME("blk.%.exp_probs_b.bias", "backbone.layers.%.mixer.gate.e_score_correction_bias"),
    NAME("blk.%.ffn_up_exps", "backbone.layers.%.mixer.experts.#.up_proj"),
    NAME("blk.%.ffn_down_exps", "backbone.layers.%.mixer.experts.#.down_proj"),
    NAME("blk.%.ffn_up_shexp", "backbone.layers.%.mixer.shared_experts.up_proj"),
    NAME("blk.%.ffn_down_shexp", "backbone.layers.%.mixer.shared_experts.down_proj"),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_falcon_mamba = {{mamba_names, mamba1_names}};
const struct gguf_naming gguf_naming_mamba2 = {{mamba_names, mamba2_names}};
const struct gguf_naming gguf_naming_bamba = {{bamba_names, hybrid_ssm_names, hybrid_mamba2_names,
                                               gguf_names_rotated, gguf_names_embedding,
                                               gguf_names_norm, gguf_names_attention}};
const struct gguf_naming gguf_naming_granitemoehybrid = {
    {granite_hybrid_names, gguf_names_granite_experts, hybrid_ssm_names, hybrid_mamba2_names,
     gguf_names_rotated, gguf_names_embedding, gguf_names_norm, gguf_names_attention}};
const struct gguf_naming gguf_naming_jamba = {{bamba_names, hybrid_ssm_names, jamba_names,
                                               gguf_names_embedding, gguf_names_norm,
                                               gguf_names_attention}};
const struct gguf_naming gguf_naming_falcon_h1 = {{falcon_h1_names, bamba_names, hybrid_ssm_names,
                                                   hybrid_mamba2_names, gguf_names_embedding,
                                                   gguf_names_norm, gguf_names_attention}};
const struct gguf_naming gguf_naming_nemotron_h = {{nemotron_h_names, mamba_names, mamba2_names}};
