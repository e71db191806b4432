/* Lists that rows of the table of architectures share. Only files of the table include it. */
#pragma once

#include "gguf/models/models.h"

/* Each ends with a row without a name. */
extern const struct gguf_architecture gguf_dense_models[], gguf_expert_models[],
    gguf_recurrent_models[];

/* ---- tensors outside of layers ---- */

#define FACTORS                                                                                    \
    " (rope_factors_long rope_factors_short)? blk.0.rope_factors_long? blk.0.rope_factors_short?"
#define FREQUENCIES      " rope_freqs? blk.0.rope_freqs?"
#define ENDS             "token_embd output_norm output"
#define BOTH_ENDS        "token_embd output_norm"         /* token_embd is used twice */
#define TIED_ENDS        "token_embd output_norm output?" /* without output, token_embd is used twice */
#define BIASED_ENDS      "token_embd output_norm output_norm.bias output"
#define TIED_BIASED_ENDS "token_embd output_norm output_norm.bias output?"

/* ---- norms of a layer ---- */

#define NORMS          "attn_norm ffn_norm"
#define BIASED_NORMS   "attn_norm attn_norm.bias ffn_norm ffn_norm.bias"
#define SANDWICH_NORMS "attn_norm post_attention_norm ffn_norm post_ffw_norm"
#define POST_NORMS     "post_attention_norm post_ffw_norm"
#define LATE_NORMS     "attn_norm post_attention_norm" /* the second one is before the feed-forward */

/* ---- attention ---- */

#define QKV           "attn_output attn_q|attn_qkv attn_k|attn_qkv attn_v|attn_qkv"
#define QKV_BIASES    " attn_q.bias|attn_qkv.bias attn_k.bias|attn_qkv.bias attn_v.bias|attn_qkv.bias"
#define QKV_BIASES_IF " attn_qkv.bias? (attn_q.bias attn_k.bias attn_v.bias)?"
#define OUT_BIAS_IF   " attn_output.bias?"
#define QK_NORMS      " attn_q_norm attn_k_norm"

/* As in llama, where a switch of the configuration adds biases. */
#define ATTENTION        QKV QKV_BIASES_IF
#define BIASED_ATTENTION QKV QKV_BIASES " attn_output.bias"

/* Multi-head latent attention. Files have kv_b whole or as two parts. */
#define LATENT_Q  " attn_q_b|attn_q (attn_q_a attn_q_a_norm attn_q_b)?"
#define LATENT_KV "attn_kv_a_mqa attn_kv_a_norm attn_output attn_k_b|attn_kv_b attn_v_b|attn_kv_b"
#define LATENT    LATENT_KV LATENT_Q

/* ---- feed-forward ---- */

#define GATED          "ffn_down ffn_up|ffn_gate_up ffn_gate|ffn_gate_up"
#define GATED_BIASES   " (ffn_gate.bias ffn_up.bias ffn_down.bias)?"
#define UP_DOWN        "ffn_down ffn_up" /* without a gate, or with one that is part of ffn_up */
#define UP_DOWN_BIASED "ffn_down ffn_down.bias ffn_up ffn_up.bias"
#define EXPERTS                                                                                    \
    "ffn_gate_inp ffn_down_exps ffn_up_exps|ffn_gate_up_exps ffn_gate_exps|ffn_gate_up_exps"
#define SHARED         " ffn_down_shexp ffn_up_shexp|ffn_gate_up_shexp ffn_gate_shexp|ffn_gate_up_shexp"
#define SHARED_IF      " (ffn_down_shexp ffn_up_shexp ffn_gate_shexp)?"
#define CHOICE_BIAS    " exp_probs_b.bias|exp_probs_b"
#define CHOICE_BIAS_IF " exp_probs_b.bias? exp_probs_b?"

/* Layers that predict further tokens. */
#define NEXTN                                                                                      \
    "nextn.eh_proj nextn.enorm nextn.hnorm nextn.embed_tokens? nextn.shared_head_head? "           \
    "nextn.shared_head_norm?"

/* ---- all tensors of a model ---- */

#define DENSE_MODEL(ends, norms, attention_, feed_forward)                                         \
    {                                                                                              \
        .model = (ends), .layer = (norms), .attention = (attention_), .dense = (feed_forward)      \
    }

/* Experts in every layer. */
#define EXPERT_MODEL(ends, norms, attention_, experts_)                                            \
    {                                                                                              \
        .model = (ends), .layer = (norms), .attention = (attention_), .experts = (experts_)        \
    }

/* Dense layers beside layers with experts, which may be NULL, and layers with a recurrence. */
#define HYBRID_MODEL(ends, norms, attention_, recurrence_, dense_, experts_, nextn_)               \
    {                                                                                              \
        .model = (ends), .layer = (norms), .attention = (attention_), .recurrence = (recurrence_), \
        .dense = (dense_), .experts = (experts_), .nextn = (nextn_)                                \
    }
#define NEXTN_MODEL(ends, norms, attention, experts, nextn)                                        \
    HYBRID_MODEL(ends, norms, attention, NULL, GATED, experts, nextn)
#define MIXED_MODEL(ends, norms, attention, experts)                                               \
    NEXTN_MODEL(ends, norms, attention, experts, NULL)

/* Llama and its variants. */
#define LLAMA_MODEL(experts)                                                                       \
    HYBRID_MODEL(TIED_ENDS FREQUENCIES FACTORS, NORMS, ATTENTION OUT_BIAS_IF, NULL,                \
                 GATED GATED_BIASES, experts, NULL)

/* ---- keys ---- */

#define RMS   "attention.head_count attention.layer_norm_rms_epsilon"
#define LAYER "attention.head_count attention.layer_norm_epsilon"

/* Numbers of experts that every model of the architecture has. */
#define ROUTED " expert_count expert_used_count"

/* Weights of experts in DeepSeek and related models. The rows add expert_gating_func. */
#define WEIGHED " expert_weights_norm=0 expert_weights_scale=1"

/* The weights of the selected experts are divided by their sum. */
#define NORMED " expert_weights_norm:1"

/* Defaults of expert_gating_func. */
#define GATED_BY_SOFTMAX " expert_gating_func=1"
#define GATED_BY_SIGMOID " expert_gating_func=2"

#define WINDOW_IF " attention.sliding_window? attention.sliding_window_pattern? rope.freq_base_swa?"
#define WINDOW    " attention.sliding_window attention.sliding_window_pattern? rope.freq_base_swa?"

/* Windowed layers rotate with their own base. */
#define LOCAL_WINDOW_IF                                                                            \
    " attention.sliding_window? attention.sliding_window_pattern? rope.freq_base_swa=10000"

/* Widths of heads in windowed layers; default: the widths in other layers. */
#define WINDOW_WIDTHS_IF                                                                           \
    " attention.key_length_swa? attention.value_length_swa? rope.dimension_count_swa?"

/* Granite's multipliers; without attention.scale, it is one over the root of a head's width. */
#define GRANITE_SCALES                                                                             \
    " logit_scale residual_scale=1 embedding_scale=1 attention.scale? rope.scaling.finetuned=1"

#define TEMPERATURE " attention.temperature_scale? attention.temperature_length?"
#define PREDICTED   " nextn_predict_layers?"

/* A part of the head is rotated. The key is required, since all of the head would be without it. */
#define PARTLY_ROTATED " rope.dimension_count"
