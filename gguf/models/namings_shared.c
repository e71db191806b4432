/* Names that several namings share. */
#include "gguf/models/naming_parts.h"

const struct gguf_rename gguf_names_embedding[] = {
    NAME("token_embd", "model.embed_tokens"),
    NAME("output_norm", "model.norm"),
    NAME("output", "lm_head"),
    /* rope_parameters of config.json have them */
    ELSEWHERE("rope_freqs"),
    ELSEWHERE("rope_factors_long"),
    ELSEWHERE("rope_factors_short"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_norm[] = {
    NAME("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    NAME("blk.%.ffn_norm", "model.layers.%.post_attention_layernorm"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_rotated[] = {
    ORDERED("blk.%.attn_q", "model.layers.%.self_attn.q_proj", GGUF_PAIRS_Q),
    ORDERED("blk.%.attn_k", "model.layers.%.self_attn.k_proj", GGUF_PAIRS_K),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_attention[] = {
    NAME("blk.%.attn_q", "model.layers.%.self_attn.q_proj"),
    NAME("blk.%.attn_k", "model.layers.%.self_attn.k_proj"),
    NAME("blk.%.attn_v", "model.layers.%.self_attn.v_proj"),
    NAME("blk.%.attn_output", "model.layers.%.self_attn.o_proj"),
    NAME("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm"),
    NAME("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_mlp[] = {
    GATED_NAMES("", "model.layers.%.mlp."),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_experts[] = {
    NAME("blk.%.ffn_gate_inp", "model.layers.%.mlp.gate"),
    GATED_NAMES("_exps", "model.layers.%.mlp.experts.#."),
    /* the converter's option --fuse-gate-up-exps */
    NAME("blk.%.ffn_gate_up_exps.weight", "model.layers.%.mlp.experts.gate_up_proj"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_shared_expert[] = {
    GATED_NAMES("_shexp", "model.layers.%.mlp.shared_expert."),
    ORDERED("blk.%.ffn_gate_inp_shexp", "model.layers.%.mlp.shared_expert_gate", GGUF_ONE_ROW),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_shared_experts[] = {
    GATED_NAMES("_shexp", "model.layers.%.mlp.shared_experts."),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_granite_experts[] = {
    JOINED("blk.%.ffn_gate_exps", "blk.%.ffn_up_exps",
           "model.layers.%.block_sparse_moe.input_linear", GGUF_BOTH_EXPERTS),
    ELSEWHERE("blk.%.ffn_up_exps"),
    NAME("blk.%.ffn_down_exps", "model.layers.%.block_sparse_moe.output_linear"),
    NAME("blk.%.ffn_gate_inp", "model.layers.%.block_sparse_moe.router.layer"),
    JOINED("blk.%.ffn_gate_shexp", "blk.%.ffn_up_shexp", "model.layers.%.shared_mlp.input_linear",
           GGUF_BOTH_ROWS),
    ELSEWHERE("blk.%.ffn_up_shexp"),
    NAME("blk.%.ffn_down_shexp", "model.layers.%.shared_mlp.output_linear"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_block_sparse[] = {
    NAME("blk.%.ffn_gate_inp", "model.layers.%.block_sparse_moe.gate"),
    NAME("blk.%.ffn_gate_exps", "model.layers.%.block_sparse_moe.experts.#.w1"),
    NAME("blk.%.ffn_down_exps", "model.layers.%.block_sparse_moe.experts.#.w2"),
    NAME("blk.%.ffn_up_exps", "model.layers.%.block_sparse_moe.experts.#.w3"),
    NAME("blk.%.exp_probs_b.bias", "model.layers.%.block_sparse_moe.e_score_correction_bias"),
    END_OF_NAMES,
};

const struct gguf_rename gguf_names_choice_bias[] = {
    NAME("blk.%.exp_probs_b.bias", "model.layers.%.mlp.gate.e_score_correction_bias"),
    END_OF_NAMES,
};
