/* Members that several rows share. */
#include "fs/tree/hf/hf_rows.h"

const struct fs_hf_entry fs_hf_common_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    KEY("num_attention_heads", "attention.head_count"),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

const struct fs_hf_entry fs_hf_sizes[] = {
    COMMON_SIZES,
    KEY("intermediate_size", "feed_forward_length"),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    END_OF_CONFIG,
};

/* Sizes of models that may lack dense layers. */
const struct fs_hf_entry fs_hf_moe_sizes[] = {
    COMMON_SIZES,
    KEY_OR("intermediate_size", "feed_forward_length", ""),
    CALL("num_key_value_heads", fs_hf_write_n_head_kv),
    END_OF_CONFIG,
};

/* Sizes where keys have a number per layer, 0 for layers without attention. */
const struct fs_hf_entry fs_hf_hybrid_sizes[] = {
    KEY("hidden_size", "embedding_length"),
    COUNT_OF("intermediate_size", "feed_forward_length", fs_hf_write_largest),
    CALL("num_hidden_layers", fs_hf_write_n_layer),
    COUNT_OF("num_attention_heads", "attention.head_count", fs_hf_write_largest),
    CALL("num_key_value_heads", fs_hf_write_hybrid_n_head_kv),
    KEY("max_position_embeddings", "context_length"),
    END_OF_CONFIG,
};

static void write_n_shared(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_key *key = fs_hf_key(config->hf, "expert_shared_count");

    if (key)
        fs_hf_member_key(config, entry->name, key);
    else if (fs_hf_any_tensor(config->hf, "blk.%.ffn_down_shexp"))
        fs_hf_problem(config, "it has shared experts, and no key expert_shared_count");
}

/* The width of an expert, from the shape: its key may be missing. */
static void write_columns(struct fs_hf_config *config, const struct fs_hf_entry *entry)
{
    const struct gguf_tensor *tensor = fs_hf_any_tensor(config->hf, entry->key);

    if (tensor)
        fs_hf_member_unsigned(config, entry->name, tensor->ne[0]);
}

const struct fs_hf_entry fs_hf_routed_config[] = {
    KEY_OR("n_routed_experts", "expert_count", ""),
    KEY_OR("num_experts_per_tok", "expert_used_count", ""),
    CALL("n_shared_experts", write_n_shared),
    COUNT_OF("moe_intermediate_size", "blk.%.ffn_down_exps.weight", write_columns),
    CALL("first_k_dense_replace", fs_hf_write_n_dense),
    KEY_OR("routed_scaling_factor", "expert_weights_scale", "1.0"),
    KEY_OR("norm_topk_prob", "expert_weights_norm", "false"),
    EXPERT_GROUPS,
    END_OF_CONFIG,
};
