/* Recurrent models, and hybrids of recurrent layers and attention. */
#include "gguf/models/model_parts.h"

#define MAMBA  "ssm_in ssm_conv1d ssm_x ssm_dt ssm_dt.bias ssm_a ssm_d ssm_out"
#define MAMBA2 "ssm_in ssm_conv1d ssm_dt.bias ssm_a ssm_d ssm_out"

/* The gated delta net, with fused or separate products. */
#define DELTA_NET "ssm_conv1d ssm_dt.bias ssm_a ssm_norm ssm_out attn_qkv|ssm_in attn_gate|ssm_in "

/*
 * Time mixing of RWKV 6 and 7. Some tensors are optional because files of rwkv.cpp have them under
 * other names; the runner requires one of both.
 */
#define RWKV6                                                                                      \
    "time_mix_w1 time_mix_w2 time_mix_lerp_x time_mix_decay? time_mix_decay_w1 time_mix_decay_w2 " \
    "time_mix_key time_mix_value time_mix_receptance time_mix_gate time_mix_output "
#define RWKV7                                                                                      \
    "time_mix_w0 time_mix_w1 time_mix_w2 time_mix_a0 time_mix_a1 time_mix_a2 "                     \
    "(time_mix_v0 time_mix_v1 time_mix_v2)? time_mix_lerp_fused? time_mix_k_k time_mix_k_a "       \
    "time_mix_r_k? time_mix_key time_mix_value time_mix_receptance time_mix_output "

#define RWKV_ENDS  BIASED_ENDS " token_embd_norm token_embd_norm.bias"
#define RWKV_NORMS "attn_norm attn_norm.bias attn_norm_2|ffn_norm attn_norm_2.bias|ffn_norm.bias"

#define RECURRENT_MODEL(ends, norms, recurrence_)                                                  \
    {                                                                                              \
        .model = (ends), .layer = (norms), .recurrence = (recurrence_)                             \
    }

#define SHORT_CONVOLUTION_MODEL(experts)                                                           \
    /* the output norm is named token_embd_norm */                                                 \
    HYBRID_MODEL("token_embd token_embd_norm|output_norm output? dense_2? dense_2.bias?", NORMS,   \
                 ATTENTION QK_NORMS, "shortconv.conv shortconv.in_proj shortconv.out_proj", GATED, \
                 experts, NULL)

/* A gated delta net in most layers. */
#define DELTA_MODEL(delta, dense, experts)                                                         \
    HYBRID_MODEL(TIED_ENDS, LATE_NORMS, "attn_output attn_q attn_k attn_v" QKV_BIASES_IF QK_NORMS, \
                 DELTA_NET delta, dense, experts, NEXTN)

#define NEMOTRON_MODEL(dense, experts)                                                             \
    HYBRID_MODEL(TIED_ENDS, "attn_norm", ATTENTION OUT_BIAS_IF,                                    \
                 MAMBA2 " ssm_conv1d.bias? ssm_norm", dense, experts, NULL)

#define ONLY_RMS  "attention.head_count? attention.layer_norm_rms_epsilon"
#define ONLY_NORM "attention.head_count? attention.layer_norm_epsilon"

#define RANKED                                                                                     \
    " attention.decay_lora_rank? attention.iclr_lora_rank? "                                       \
    "attention.value_residual_mix_lora_rank? attention.gate_lora_rank?"

const struct gguf_architecture gguf_recurrent_models[] = {
    {.name = "mamba",
     .tensors = RECURRENT_MODEL(TIED_ENDS, "attn_norm", MAMBA " ssm_conv1d.bias"),
     .keys = ONLY_RMS " ssm.dt_b_c_rms=0",
     .blocks = GGUF_ONE_BLOCK},
    {.name = "mamba2",
     .tensors = RECURRENT_MODEL(TIED_ENDS, "attn_norm", MAMBA2 " ssm_conv1d.bias ssm_norm"),
     .keys = ONLY_RMS " ssm.group_count",
     .blocks = GGUF_ONE_BLOCK},
    {.name = "jamba",
     .tensors = HYBRID_MODEL(TIED_ENDS, NORMS, ATTENTION,
                             MAMBA " ssm_conv1d.bias ssm_dt_norm ssm_b_norm ssm_c_norm", GATED,
                             EXPERTS, NULL),
     .keys = RMS},
    {.name = "granitehybrid",
     .tensors = HYBRID_MODEL(TIED_ENDS FREQUENCIES, NORMS, ATTENTION OUT_BIAS_IF,
                             MAMBA2 " ssm_conv1d.bias? ssm_norm", GATED GATED_BIASES,
                             EXPERTS SHARED_IF, NULL),
     .keys = "attention.head_count attention.layer_norm_rms_epsilon logit_scale? residual_scale=1 "
             "embedding_scale=1 attention.scale? rope.scaling.finetuned=1 ssm.group_count" NORMED},
    {.name = "falcon-h1",
     .tensors = {.model = TIED_ENDS FREQUENCIES,
                 /* attention and recurrence are in every layer */
                 .layer = NORMS " " MAMBA2 " ssm_conv1d.bias? ssm_norm? " ATTENTION OUT_BIAS_IF,
                 .dense = GATED GATED_BIASES},
     .keys = RMS " ssm.group_count"},
    {.name = "nemotron_h",
     .tensors = NEMOTRON_MODEL(UP_DOWN " (ffn_down.bias ffn_up.bias)?", NULL),
     .keys = RMS " ssm.group_count",
     .blocks = GGUF_ONE_BLOCK},
    {.name = "nemotron_h_moe",
     .tensors =
         NEMOTRON_MODEL(NULL, "ffn_gate_inp ffn_down_exps ffn_up_exps ffn_down_shexp ffn_up_shexp "
                              "(ffn_latent_down ffn_latent_up)?" CHOICE_BIAS),
     .keys = RMS ROUTED WEIGHED " ssm.group_count expert_gating_func:2",
     .blocks = GGUF_ONE_BLOCK},
    {.name = "plamo2",
     .tensors = HYBRID_MODEL(TIED_ENDS, SANDWICH_NORMS, "attn_output attn_qkv" QK_NORMS,
                             MAMBA " ssm_dt_norm ssm_b_norm ssm_c_norm", UP_DOWN, NULL, NULL),
     .keys = RMS},
    {.name = "lfm2", .tensors = SHORT_CONVOLUTION_MODEL(NULL), .keys = RMS WINDOW_IF},
    {.name = "lfm2moe",
     .tensors = SHORT_CONVOLUTION_MODEL(EXPERTS CHOICE_BIAS),
     .keys = RMS ROUTED NORMED " expert_gating_func"},
    {.name = "qwen3next",
     .tensors = DELTA_MODEL("ssm_ba", NULL, EXPERTS SHARED " ffn_gate_inp_shexp"),
     .keys = RMS ROUTED NORMED PREDICTED PARTLY_ROTATED " expert_weights_scale=1 ssm.group_count"},
    {.name = "qwen35",
     .tensors = DELTA_MODEL("ssm_beta ssm_alpha", GATED, NULL),
     .keys = RMS PREDICTED PARTLY_ROTATED " ssm.group_count"},
    {.name = "qwen35moe",
     .tensors = DELTA_MODEL("ssm_beta ssm_alpha", NULL, EXPERTS SHARED " ffn_gate_inp_shexp"),
     .keys = RMS ROUTED NORMED PREDICTED PARTLY_ROTATED " expert_weights_scale=1 ssm.group_count"},
    {.name = "kimi-linear",
     .tensors = {.model = ENDS,
                 .layer = NORMS " attn_output",
                 .attention =
                     "attn_kv_a_mqa attn_kv_a_norm attn_k_b|attn_kv_b attn_v_b|attn_kv_b attn_q",
                 .recurrence =
                     "ssm_conv1d_q ssm_conv1d_k ssm_conv1d_v attn_q attn_k attn_v ssm_f_a "
                     "ssm_f_b ssm_beta ssm_a ssm_dt.bias ssm_g_a ssm_g_b ssm_norm",
                 .dense = GATED,
                 .experts = EXPERTS SHARED_IF CHOICE_BIAS},
     .keys = RMS ROUTED NORMED PARTLY_ROTATED
     " attention.head_count_kv attention.kv_lora_rank expert_gating_func expert_weights_scale=1"},
    /* RWKV 4 and 5 in the files of rwkv.cpp, whose own names time mixing has as well. */
    {.name = "rwkv",
     .tensors = {.model = RWKV_ENDS,
                 .layer = RWKV_NORMS " channel_mix_key",
                 .recurrence = "time_mix_key time_mix_value time_mix_receptance time_mix_output "
                               "time_mix_gate? time_mix_decay? time_mix_first? time_mix_lerp_k? "
                               "time_mix_lerp_v? time_mix_lerp_r? time_mix_lerp_g? "
                               "(time_mix_ln time_mix_ln.bias)? channel_mix_value "
                               "channel_mix_receptance channel_mix_lerp_k? channel_mix_lerp_r?"},
     .keys = ONLY_NORM " architecture_version=4 wkv.head_size?",
     .blocks = GGUF_ANY_BLOCKS},
    {.name = "rwkv6",
     .tensors = {.model = RWKV_ENDS,
                 .layer = RWKV_NORMS " channel_mix_key channel_mix_value channel_mix_receptance "
                                     "channel_mix_lerp_k? channel_mix_lerp_r?",
                 .recurrence = RWKV6 "time_mix_ln time_mix_ln.bias time_mix_first? "
                                     "time_mix_lerp_fused? time_mix_lerp_w? time_mix_lerp_k? "
                                     "time_mix_lerp_v? time_mix_lerp_r? time_mix_lerp_g?"},
     .keys = ONLY_NORM " wkv.head_size rescale_every_n_layers? architecture_version=6",
     .blocks = GGUF_ANY_BLOCKS},
    {.name = "rwkv7",
     .tensors = RECURRENT_MODEL(RWKV_ENDS,
                                RWKV_NORMS " channel_mix_key channel_mix_value channel_mix_lerp_k?",
                                RWKV7 "time_mix_ln time_mix_ln.bias (time_mix_g1 time_mix_g2)?"),
     .keys = ONLY_NORM " wkv.head_size architecture_version=7" RANKED,
     .blocks = GGUF_ANY_BLOCKS},
    {.name = "rwkv6qwen2",
     .tensors = {.model = ENDS " output_norm.bias?",
                 .layer = NORMS,
                 .recurrence = RWKV6 "time_mix_lerp_fused time_mix_first? (time_mix_key.bias "
                                     "time_mix_value.bias time_mix_receptance.bias)?",
                 .dense = GATED},
     .keys = ONLY_RMS " wkv.head_size architecture_version=6"},
    {.name = "arwkv7",
     .tensors = {.model = ENDS,
                 .layer = NORMS,
                 .recurrence = RWKV7 "(time_mix_g1 time_mix_g2)? (time_mix_ln time_mix_ln.bias)?",
                 .dense = GATED},
     .keys = ONLY_RMS " wkv.head_size architecture_version=7" RANKED},
    {.name = NULL},
};
