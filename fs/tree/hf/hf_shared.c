/* Rules and members that several rows share. */
#include "fs/tree/hf/hf_rows.h"

const struct fs_hf_rule fs_hf_embedding_rules[] = {
    TENSOR("token_embd", "model.embed_tokens"),
    TENSOR("output_norm", "model.norm"),
    TENSOR("output", "lm_head"),
    /* rope_parameters of config.json have them */
    ELSEWHERE("rope_freqs"),
    ELSEWHERE("rope_factors_long"),
    ELSEWHERE("rope_factors_short"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_norm_rules[] = {
    TENSOR("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    TENSOR("blk.%.ffn_norm", "model.layers.%.post_attention_layernorm"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_rotated_rules[] = {
    ARRANGED("blk.%.attn_q", "model.layers.%.self_attn.q_proj", fs_hf_rotated_q),
    ARRANGED("blk.%.attn_k", "model.layers.%.self_attn.k_proj", fs_hf_rotated_k),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_attention_rules[] = {
    TENSOR("blk.%.attn_q", "model.layers.%.self_attn.q_proj"),
    TENSOR("blk.%.attn_k", "model.layers.%.self_attn.k_proj"),
    TENSOR("blk.%.attn_v", "model.layers.%.self_attn.v_proj"),
    TENSOR("blk.%.attn_output", "model.layers.%.self_attn.o_proj"),
    TENSOR("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm"),
    TENSOR("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_mlp_rules[] = {
    TENSOR("blk.%.ffn_gate", "model.layers.%.mlp.gate_proj"),
    TENSOR("blk.%.ffn_up", "model.layers.%.mlp.up_proj"),
    TENSOR("blk.%.ffn_down", "model.layers.%.mlp.down_proj"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_experts_rules[] = {
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.mlp.gate"),
    TENSOR("blk.%.ffn_gate_exps", "model.layers.%.mlp.experts.#.gate_proj"),
    TENSOR("blk.%.ffn_up_exps", "model.layers.%.mlp.experts.#.up_proj"),
    TENSOR("blk.%.ffn_down_exps", "model.layers.%.mlp.experts.#.down_proj"),
    /* the converter's option --fuse-gate-up-exps */
    TENSOR("blk.%.ffn_gate_up_exps.weight", "model.layers.%.mlp.experts.gate_up_proj"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_shared_expert_rules[] = {
    TENSOR("blk.%.ffn_gate_shexp", "model.layers.%.mlp.shared_expert.gate_proj"),
    TENSOR("blk.%.ffn_up_shexp", "model.layers.%.mlp.shared_expert.up_proj"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.mlp.shared_expert.down_proj"),
    ARRANGED("blk.%.ffn_gate_inp_shexp", "model.layers.%.mlp.shared_expert_gate", fs_hf_matrix),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_shared_experts_rules[] = {
    TENSOR("blk.%.ffn_gate_shexp", "model.layers.%.mlp.shared_experts.gate_proj"),
    TENSOR("blk.%.ffn_up_shexp", "model.layers.%.mlp.shared_experts.up_proj"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.mlp.shared_experts.down_proj"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_granite_experts_rules[] = {
    JOINED("blk.%.ffn_gate_exps", "blk.%.ffn_up_exps",
           "model.layers.%.block_sparse_moe.input_linear", fs_hf_concatenated),
    ELSEWHERE("blk.%.ffn_up_exps"),
    TENSOR("blk.%.ffn_down_exps", "model.layers.%.block_sparse_moe.output_linear"),
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.block_sparse_moe.router.layer"),
    JOINED("blk.%.ffn_gate_shexp", "blk.%.ffn_up_shexp", "model.layers.%.shared_mlp.input_linear",
           fs_hf_concatenated_rows),
    ELSEWHERE("blk.%.ffn_up_shexp"),
    TENSOR("blk.%.ffn_down_shexp", "model.layers.%.shared_mlp.output_linear"),
    END_OF_RULES,
};

const struct fs_hf_rule fs_hf_block_sparse_rules[] = {
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.block_sparse_moe.gate"),
    TENSOR("blk.%.ffn_gate_exps", "model.layers.%.block_sparse_moe.experts.#.w1"),
    TENSOR("blk.%.ffn_down_exps", "model.layers.%.block_sparse_moe.experts.#.w2"),
    TENSOR("blk.%.ffn_up_exps", "model.layers.%.block_sparse_moe.experts.#.w3"),
    /* of files from before experts were joined */
    TENSOR("blk.%.ffn_gate.#", "model.layers.%.block_sparse_moe.experts.#.w1"),
    TENSOR("blk.%.ffn_down.#", "model.layers.%.block_sparse_moe.experts.#.w2"),
    TENSOR("blk.%.ffn_up.#", "model.layers.%.block_sparse_moe.experts.#.w3"),
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.block_sparse_moe.e_score_correction_bias"),
    END_OF_RULES,
};

const struct fs_hf_entry fs_hf_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    KEY("intermediate_size", "feed_forward_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

/* The same where a model may have no dense layer. */
const struct fs_hf_entry fs_hf_moe_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    KEY_OR("intermediate_size", "feed_forward_length", ""),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

/* The same where keys have a number for each layer, 0 for layers without attention. */
const struct fs_hf_entry fs_hf_hybrid_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("intermediate_size", "feed_forward_length", fs_hf_write_largest),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    COUNT_OF("num_attention_heads", "attention.head_count", fs_hf_write_largest),
    CALL("num_key_value_heads", fs_hf_write_hybrid_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_head_dim_config[] = {
    CALL("head_dim", fs_hf_write_head_dim),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_rms_norm[] = {
    KEY("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_layer_norm[] = {
    KEY("layer_norm_eps", "attention.layer_norm_epsilon"),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_attention_bias[] = {
    HAS("attention_bias", "blk.%.attn_q.bias"),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_silu[] = {
    JSON("hidden_act", "\"silu\""),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_rope[] = {
    CALL("rope", fs_hf_write_rope),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_partial_rope[] = {
    CALL("partial_rotary_factor", fs_hf_write_rope),
    END_OF_CONFIG,
};

const struct fs_hf_rule fs_hf_choice_bias_rules[] = {
    TENSOR("blk.%.exp_probs_b.bias", "model.layers.%.mlp.gate.e_score_correction_bias"),
    END_OF_RULES,
};

const struct fs_hf_entry fs_hf_routed_config[] = {
    KEY_OR("n_routed_experts", "expert_count", ""),
    KEY_OR("num_experts_per_tok", "expert_used_count", ""),
    KEY_OR("n_shared_experts", "expert_shared_count", ""),
    KEY_OR("moe_intermediate_size", "expert_feed_forward_length", ""),
    CALL("first_k_dense_replace", fs_hf_write_n_dense),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    KEY_OR("n_group", "expert_group_count", "1"),
    KEY_OR("topk_group", "expert_group_used_count", "1"),
    END_OF_CONFIG,
};
