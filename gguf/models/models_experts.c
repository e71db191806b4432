/* Transformers with a mixture of experts. */
#include "gguf/models/model_parts.h"

const struct gguf_architecture gguf_expert_models[] = {
    {.name = "qwen2moe",
     .tensors = EXPERT_MODEL(ENDS, NORMS, QKV QKV_BIASES, EXPERTS SHARED " ffn_gate_inp_shexp"),
     .keys = RMS ROUTED},
    {.name = "qwen3moe",
     .tensors = EXPERT_MODEL(TIED_ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS),
     .keys = RMS ROUTED NORMED},
    {.name = "olmoe",
     .tensors = EXPERT_MODEL(ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS),
     .keys = RMS ROUTED},
    {.name = "granitemoe",
     .tensors = LLAMA_MODEL(EXPERTS SHARED_IF),
     .keys = RMS NORMED GRANITE_SCALES},
    {.name = "deepseek",
     .tensors = MIXED_MODEL(TIED_ENDS, NORMS, ATTENTION, EXPERTS SHARED),
     .keys = RMS ROUTED " expert_weights_scale=1"},
    {.name = "deepseek2",
     .tensors = NEXTN_MODEL(TIED_ENDS, NORMS, LATENT, EXPERTS SHARED CHOICE_BIAS_IF, NEXTN),
     .keys = RMS ROUTED WEIGHED GATED_BY_SOFTMAX TEMPERATURE PREDICTED PARTLY_ROTATED
     " attention.kv_lora_rank rope.scaling.yarn_log_multiplier?"},
    {.name = "glm4moe",
     .tensors = NEXTN_MODEL(TIED_ENDS, LATE_NORMS, ATTENTION " (attn_q_norm attn_k_norm)?",
                            EXPERTS SHARED CHOICE_BIAS, NEXTN),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID PREDICTED PARTLY_ROTATED},
    {.name = "exaone-moe",
     .tensors = NEXTN_MODEL(ENDS FREQUENCIES, NORMS, ATTENTION QK_NORMS, EXPERTS SHARED CHOICE_BIAS,
                            NEXTN),
     .keys = RMS ROUTED WEIGHED " expert_gating_func" WINDOW PREDICTED,
     .window = {.period = 4}},
    {.name = "ernie4_5-moe",
     .tensors = MIXED_MODEL(TIED_ENDS, NORMS, ATTENTION OUT_BIAS_IF, EXPERTS SHARED_IF CHOICE_BIAS),
     .keys = RMS ROUTED NORMED},
    {.name = "hunyuan-moe",
     .tensors = EXPERT_MODEL(TIED_ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS SHARED),
     .keys = RMS ROUTED NORMED},
    {.name = "minimax-m2",
     .tensors = EXPERT_MODEL(ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS CHOICE_BIAS),
     .keys = RMS ROUTED NORMED PARTLY_ROTATED " expert_gating_func"},
    {.name = "dots1",
     .tensors = MIXED_MODEL(ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS SHARED CHOICE_BIAS),
     .keys = RMS ROUTED WEIGHED " expert_gating_func"},
    {.name = "dbrx",
     .tensors = EXPERT_MODEL(ENDS, "attn_norm attn_output_norm", "attn_output attn_qkv", EXPERTS),
     .keys = LAYER ROUTED NORMED " attention.clamp_kqv"},
    {.name = "llama4",
     .tensors = MIXED_MODEL(TIED_ENDS FREQUENCIES, NORMS, ATTENTION, EXPERTS SHARED),
     .keys = RMS ROUTED " attention.sliding_window=8192 attention.sliding_window_pattern? "
                        "rope.freq_base_swa? attention.temperature_scale:0.1 "
                        "attention.temperature_length:8192 expert_gating_func:2",
     .window = {.period = 4},
     .big = {.n_expert = 128}},
    {.name = "phimoe",
     .tensors =
         EXPERT_MODEL(BIASED_ENDS " output.bias" FACTORS, BIASED_NORMS, BIASED_ATTENTION, EXPERTS),
     .keys = RMS ROUTED NORMED},
    {.name = "mistral3",
     .tensors = LLAMA_MODEL(EXPERTS),
     .keys = RMS NORMED TEMPERATURE " rope.scaling.yarn_log_multiplier?"},
    {.name = "mistral4", .same_as = "deepseek2"},
    {.name = "mellum",
     .tensors = EXPERT_MODEL(ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS),
     .keys = RMS ROUTED NORMED
     " attention.sliding_window? attention.sliding_window_pattern rope.freq_base_swa?",
     .window = {.period = 4}},
    {.name = "arctic",
     .tensors = EXPERT_MODEL(TIED_ENDS, NORMS " " GATED, ATTENTION, EXPERTS " ffn_norm_exps"),
     .keys = RMS ROUTED NORMED},
    {.name = "hy_v3",
     .tensors = NEXTN_MODEL(TIED_ENDS, NORMS, ATTENTION QK_NORMS, EXPERTS SHARED_IF " exp_probs_b?",
                            NEXTN),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID PREDICTED},
    {.name = "cohere2moe",
     .tensors = NEXTN_MODEL(TIED_ENDS, "attn_norm", ATTENTION, EXPERTS SHARED_IF, NEXTN),
     .keys = "attention.head_count "
             "attention.layer_norm_epsilon|attention.layer_norm_rms_epsilon" ROUTED WEIGHED
                 GATED_BY_SIGMOID PREDICTED
             " attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa? "
             "logit_scale leading_dense_block_count",
     .window = {.period = 4, .is_first_full = true}},
    {.name = "afmoe",
     .tensors = MIXED_MODEL(TIED_ENDS, SANDWICH_NORMS, ATTENTION QK_NORMS " attn_gate",
                            EXPERTS SHARED_IF CHOICE_BIAS),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID WINDOW_IF,
     .window = {.period = 4}},
    {.name = "laguna",
     .tensors =
         MIXED_MODEL(TIED_ENDS, NORMS, ATTENTION QK_NORMS " attn_gate", EXPERTS SHARED CHOICE_BIAS),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID WINDOW_IF WINDOW_WIDTHS_IF,
     .window = {.period = 4, .is_first_full = true}},
    {.name = "bailingmoe",
     .tensors = EXPERT_MODEL(ENDS, NORMS, ATTENTION, EXPERTS SHARED),
     .keys = RMS ROUTED WEIGHED},
    {.name = "bailingmoe2",
     .tensors = NEXTN_MODEL(ENDS, NORMS, "attn_output attn_qkv" QK_NORMS,
                            EXPERTS SHARED CHOICE_BIAS_IF, NEXTN " layer_output_norm"),
     .keys = RMS ROUTED WEIGHED PREDICTED PARTLY_ROTATED " expert_gating_func"},
    {.name = "smallthinker",
     .tensors = EXPERT_MODEL(TIED_ENDS, NORMS, ATTENTION, EXPERTS),
     .keys = RMS ROUTED NORMED WINDOW_IF " expert_gating_func",
     .window = {.period = 4, .is_first_full = true}},
    {.name = "grovemoe",
     .tensors = EXPERT_MODEL(TIED_ENDS, NORMS, ATTENTION QK_NORMS,
                             EXPERTS " ffn_gate_chexps|ffn_gate_up_chexps ffn_down_chexps "
                                     "ffn_up_chexps|ffn_gate_up_chexps"),
     .keys = RMS ROUTED NORMED " experts_per_group expert_group_scale"},
    {.name = "mimo2",
     .tensors = NEXTN_MODEL(ENDS, NORMS, ATTENTION " attn_sinks?", EXPERTS CHOICE_BIAS,
                            NEXTN " layer_output_norm?"),
     .keys = RMS ROUTED NORMED PREDICTED PARTLY_ROTATED
     " attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa=10000 "
     "attention.value_scale=1 expert_gating_func:2"},
    {.name = "step35",
     .tensors = NEXTN_MODEL(ENDS FREQUENCIES FACTORS, NORMS,
                            ATTENTION " (attn_q_norm attn_k_norm)? attn_gate?",
                            EXPERTS SHARED_IF CHOICE_BIAS_IF, NEXTN),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID PREDICTED WINDOW_WIDTHS_IF
     " attention.sliding_window attention.sliding_window_pattern rope.freq_base_swa=10000 "
     "swiglu_clamp_exp? swiglu_clamp_shexp?"},
    {.name = "grok",
     .tensors = EXPERT_MODEL(TIED_ENDS,
                             "attn_norm attn_output_norm ffn_norm layer_output_norm|post_ffw_norm",
                             ATTENTION, EXPERTS " (ffn_gate ffn_up ffn_down)?"),
     .keys =
         RMS ROUTED NORMED " logit_scale=0.5773502691896257 embedding_scale=78.38367176906169 "
                           "attention.output_scale=0.08838834764831845 attn_logit_softcapping=30 "
                           "final_logit_softcapping=0 rope.scaling.yarn_beta_fast=8"},
    {.name = "minimax-m3",
     .tensors = MIXED_MODEL(ENDS, NORMS, ATTENTION QK_NORMS,
                            EXPERTS SHARED CHOICE_BIAS
                            " indexer.q_proj indexer.k_proj indexer.q_norm indexer.k_norm"),
     .keys = RMS ROUTED WEIGHED PARTLY_ROTATED
     " expert_gating_func attention.indexer.head_count attention.indexer.key_length "
     "attention.indexer.top_k attention.indexer.block_size attention.indexer.local_blocks"},
    {.name = "deepseek32",
     .tensors = NEXTN_MODEL(TIED_ENDS, NORMS,
                            LATENT_KV " attn_q_a attn_q_a_norm attn_q_b indexer.k_norm "
                                      "indexer.k_norm.bias indexer.proj indexer.attn_k "
                                      "indexer.attn_q_b",
                            EXPERTS SHARED CHOICE_BIAS, NEXTN),
     .keys = RMS ROUTED WEIGHED PREDICTED PARTLY_ROTATED
     " expert_gating_func attention.kv_lora_rank rope.scaling.yarn_log_multiplier? "
     "attention.indexer.head_count attention.indexer.key_length attention.indexer.top_k"},
    {.name = "glm-dsa",
     .tensors = NEXTN_MODEL(TIED_ENDS, NORMS,
                            LATENT_KV " attn_q_a attn_q_a_norm attn_q_b (indexer.k_norm "
                                      "indexer.k_norm.bias indexer.proj indexer.attn_k "
                                      "indexer.attn_q_b)?",
                            EXPERTS SHARED CHOICE_BIAS, NEXTN),
     .keys = RMS ROUTED WEIGHED GATED_BY_SIGMOID PREDICTED PARTLY_ROTATED
     " attention.kv_lora_rank attention.indexer.head_count attention.indexer.key_length "
     "attention.indexer.top_k attention.indexer.types?",
     .full_indexer_context = 1048575},
    {.name = "qwen3vlmoe", .same_as = "qwen3moe"},
    {.name = "deepseek2-ocr",
     .tensors = MIXED_MODEL(TIED_ENDS, NORMS, ATTENTION, EXPERTS SHARED CHOICE_BIAS_IF),
     .keys = RMS ROUTED WEIGHED GATED_BY_SOFTMAX},
    {.name = "gemma4",
     .tensors = {.model = TIED_ENDS " rope_freqs (per_layer_token_embd per_layer_model_proj "
                                    "per_layer_proj_norm)?",
                 .layer = SANDWICH_NORMS " layer_output_scale? (inp_gate proj post_norm)?",
                 /* layers may use keys and values of earlier ones, or keys as values */
                 .attention = "attn_output attn_q attn_q_norm (attn_k attn_k_norm)? attn_v?",
                 .dense = GATED, /* also beside experts */
                 .experts = EXPERTS " ffn_gate_inp.scale pre_ffw_norm_2 post_ffw_norm_1 "
                                    "post_ffw_norm_2"},
     .keys = RMS NORMED
     " attention.sliding_window attention.sliding_window_pattern "
     "rope.freq_base_swa=10000 attention.key_length_swa attention.value_length_swa "
     "rope.dimension_count_swa? attention.shared_kv_layers=0 "
     "embedding_length_per_layer_input final_logit_softcapping=30 attention.scale:1"},
    {.name = "gpt-oss",
     .tensors = EXPERT_MODEL(ENDS, LATE_NORMS, BIASED_ATTENTION " attn_sinks",
                             EXPERTS " ffn_gate_inp.bias ffn_gate_exps.bias|ffn_gate_up_exps.bias "
                                     "ffn_up_exps.bias|ffn_gate_up_exps.bias ffn_down_exps.bias"),
     .keys = RMS ROUTED WINDOW " expert_gating_func:3",
     .window = {.period = 2}},
    {.name = NULL},
};
