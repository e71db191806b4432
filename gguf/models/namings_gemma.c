/* Namings of Gemma. The norms of 1 to 3 have 1 added. */
#include "gguf/models/naming_parts.h"

static const struct gguf_rename gemma_names[] = {
    PLUS_ONE("output_norm", "model.norm"),
    PLUS_ONE("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    PLUS_ONE("blk.%.attn_q_norm", "model.layers.%.self_attn.q_norm"),
    PLUS_ONE("blk.%.attn_k_norm", "model.layers.%.self_attn.k_norm"),
    END_OF_NAMES,
};

static const struct gguf_rename gemma1_names[] = {
    PLUS_ONE("blk.%.ffn_norm", "model.layers.%.post_attention_layernorm"),
    END_OF_NAMES,
};

static const struct gguf_rename gemma2_names[] = {
    PLUS_ONE("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    PLUS_ONE("blk.%.ffn_norm", "model.layers.%.pre_feedforward_layernorm"),
    PLUS_ONE("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm"),
    END_OF_NAMES,
};

static const struct gguf_rename gemma3n_names[] = {
    NAME("per_layer_token_embd", "model.embed_tokens_per_layer"),
    NAME("per_layer_model_proj", "model.per_layer_model_projection"),
    NAME("per_layer_proj_norm", "model.per_layer_projection_norm"),
    NAME("altup_proj", "model.altup_projections.#"),
    NAME("altup_unembd_proj", "model.altup_unembed_projections.#"),
    NAME("blk.%.altup_correct_scale.weight", "model.layers.%.altup.correct_output_scale"),
    NAME("blk.%.altup_correct_coef", "model.layers.%.altup.correction_coefs"),
    NAME("blk.%.altup_predict_coef", "model.layers.%.altup.prediction_coefs"),
    NAME("blk.%.altup_router", "model.layers.%.altup.modality_router"),
    NAME("blk.%.altup_router_norm", "model.layers.%.altup.router_norm"),
    NAME("blk.%.laurel_l", "model.layers.%.laurel.linear_left"),
    NAME("blk.%.laurel_r", "model.layers.%.laurel.linear_right"),
    NAME("blk.%.laurel_post_norm", "model.layers.%.laurel.post_laurel_norm"),
    NAME("blk.%.inp_gate", "model.layers.%.per_layer_input_gate"),
    NAME("blk.%.proj", "model.layers.%.per_layer_projection"),
    NAME("blk.%.post_norm", "model.layers.%.post_per_layer_input_norm"),
    NAME("blk.%.attn_norm", "model.layers.%.input_layernorm"),
    NAME("blk.%.post_attention_norm", "model.layers.%.post_attention_layernorm"),
    NAME("blk.%.ffn_norm", "model.layers.%.pre_feedforward_layernorm"),
    NAME("blk.%.post_ffw_norm", "model.layers.%.post_feedforward_layernorm"),
    END_OF_NAMES,
};

static const struct gguf_rename gemma4_names[] = {
    NAME("blk.%.layer_output_scale.weight", "model.layers.%.layer_scalar"),
    NAME("blk.%.ffn_gate_inp.weight", "model.layers.%.router.proj.weight"),
    NAME("blk.%.ffn_gate_inp.scale", "model.layers.%.router.scale"),
    NAME("blk.%.ffn_gate_up_exps.weight", "model.layers.%.experts.gate_up_proj"),
    NAME("blk.%.ffn_down_exps.weight", "model.layers.%.experts.down_proj"),
    NAME("blk.%.ffn_down_exps.scale", "model.layers.%.router.per_expert_scale"),
    NAME("blk.%.post_ffw_norm_1", "model.layers.%.post_feedforward_layernorm_1"),
    NAME("blk.%.post_ffw_norm_2", "model.layers.%.post_feedforward_layernorm_2"),
    NAME("blk.%.pre_ffw_norm_2", "model.layers.%.pre_feedforward_layernorm_2"),
    END_OF_NAMES,
};

const struct gguf_naming gguf_naming_gemma = {{gemma_names, gemma1_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_gemma2 = {{gemma_names, gemma2_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_gemma3n = {{gemma3n_names, DENSE_RULES}};
const struct gguf_naming gguf_naming_gemma4 = {{gemma4_names, gemma3n_names, DENSE_RULES}};
