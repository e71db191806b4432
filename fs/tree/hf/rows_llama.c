/* Checkpoints of llama and of models that differ from it little. */
#include "fs/tree/hf/hf_rows.h"

static bool has_experts(const struct fs_hf_model *hf)
{
    return fs_hf_number(hf, "expert_count", 0) > 0;
}

static const struct fs_hf_entry llama_config[] = {
    HAS("attention_bias", "blk.%.attn_q.bias"),
    HAS("mlp_bias", "blk.%.ffn_up.bias"),
    END_OF_CONFIG,
};

static const struct fs_hf_rule mixtral_rules[] = {
    TENSOR("blk.%.ffn_gate_inp", "model.layers.%.block_sparse_moe.gate"),
    TENSOR("blk.%.ffn_gate_exps", "model.layers.%.block_sparse_moe.experts.#.w1"),
    TENSOR("blk.%.ffn_down_exps", "model.layers.%.block_sparse_moe.experts.#.w2"),
    TENSOR("blk.%.ffn_up_exps", "model.layers.%.block_sparse_moe.experts.#.w3"),
    /* of files from before experts were joined */
    TENSOR("blk.%.ffn_gate.#", "model.layers.%.block_sparse_moe.experts.#.w1"),
    TENSOR("blk.%.ffn_down.#", "model.layers.%.block_sparse_moe.experts.#.w2"),
    TENSOR("blk.%.ffn_up.#", "model.layers.%.block_sparse_moe.experts.#.w3"),
    END_OF_RULES,
};

static const struct fs_hf_entry mixtral_config[] = {
    KEY("num_local_experts", "expert_count"),
    KEY("num_experts_per_tok", "expert_used_count"),
    CALL("sliding_window", fs_hf_write_sliding_window),
    END_OF_CONFIG,
};

#define LLAMA_RULES                                                                                \
    fs_hf_embedding_rules, fs_hf_norm_rules, fs_hf_rotated_rules, fs_hf_attention_rules
#define LLAMA_CONFIG fs_hf_sizes, fs_hf_head_dim_config, fs_hf_rms_norm, fs_hf_silu, fs_hf_rope

const struct fs_hf_row fs_hf_rows_llama[] = {
    {.architecture = "llama",
     .applies = has_experts,
     .class_name = "MixtralForCausalLM",
     .model_type = "mixtral",
     .rules = {LLAMA_RULES, mixtral_rules},
     .config = {LLAMA_CONFIG, mixtral_config}},
    {.architecture = "llama",
     .class_name = "LlamaForCausalLM",
     .model_type = "llama",
     .rules = {LLAMA_RULES, fs_hf_mlp_rules},
     .config = {LLAMA_CONFIG, llama_config}},
    {.architecture = NULL},
};
