/*
 * The parts of the table of architectures, and macros that its rows share. Only the files of the
 * table include it.
 */
#ifndef GGUFS_RUNNER_ARCHITECTURE_ROWS_H
#define GGUFS_RUNNER_ARCHITECTURE_ROWS_H

#include "contrib/runner/engine/architectures.h"

/* Each ends with a row without a name. */
extern const struct run_architecture run_dense_rows[], run_expert_rows[], run_recurrent_rows[];

/* Required tensors that many architectures share. */
#define NORMS          "attn_norm ffn_norm"
#define BIASED_NORMS   "attn_norm attn_norm.bias ffn_norm ffn_norm.bias"
#define SANDWICH_NORMS "attn_norm post_attention_norm ffn_norm post_ffw_norm"
#define POST_NORMS     "post_attention_norm post_ffw_norm"
#define QK_NORMS       "attn_q_norm attn_k_norm"
#define QKV_BIASES     "attn_q.bias|attn_qkv.bias attn_k.bias|attn_qkv.bias attn_v.bias|attn_qkv.bias"
#define GATE           "ffn_gate|ffn_gate_up"
#define GATE_EXPS      "ffn_gate_exps|ffn_gate_up_exps"
#define SHARED_EXPERTS " ffn_down_shexp ffn_gate_shexp|ffn_gate_up_shexp"
#define SELECTION_BIAS " exp_probs_b.bias|exp_probs_b"

/* Pre-norms and SwiGLU, as in llama. */
#define GATED_TENSORS .layer = NORMS, .dense = GATE, .experts = GATE_EXPS

/* Keys that weight the experts of DeepSeek and related models. */
#define EXPERTS_BY_KEYS                                                                            \
    .has_gating_key = true, .weights_norm = RUN_WEIGHTS_BY_KEY, .has_weights_scale_key = true

/* Keys that scale embeddings, residuals and logits in Granite and MiniCPM. */
#define SCALES_BY_KEYS                                                                             \
    .embedding = RUN_EMBEDDING_BY_KEY, .has_residual_key = true, .logit = RUN_LOGITS_DIVIDED

#endif
