#include "gguf/models/namings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- words that several namings share ---- */

#define LAYERS "model.layers.%"

/* The three products of a gated feed-forward, of experts or a shared one. */
#define GATED(suffix, other)                                                                       \
    " .ffn_gate" suffix "=" other "gate_proj .ffn_up" suffix "=" other "up_proj .ffn_down" suffix  \
    "=" other "down_proj"

/* rope_parameters of config.json have the factors of rotations. */
#define EMBEDDING                                                                                  \
    " token_embd=model.embed_tokens output_norm=model.norm output=lm_head rope_freqs "             \
    "rope_factors_long rope_factors_short"
#define NORM    " .attn_norm=.input_layernorm .ffn_norm=.post_attention_layernorm"
#define ROTATED " .attn_q=.self_attn.q_proj:pairs_q .attn_k=.self_attn.k_proj:pairs_k"
#define ATTENTION                                                                                  \
    " .attn_q=.self_attn.q_proj .attn_k=.self_attn.k_proj .attn_v=.self_attn.v_proj "              \
    ".attn_output=.self_attn.o_proj .attn_q_norm=.self_attn.q_norm .attn_k_norm=.self_attn.k_norm"
#define MLP GATED("", ".mlp.")

/* Rules after a model's own names. */
#define FRAME EMBEDDING NORM ATTENTION
#define DENSE FRAME MLP

#define POST_ATTENTION_NORM " .post_attention_norm=.post_attention_layernorm"
#define SINKS               " .attn_sinks.weight=.self_attn.sinks"

/* ffn_gate_up_exps: the converter's option --fuse-gate-up-exps */
#define EXPERTS                                                                                    \
    " .ffn_gate_inp=.mlp.gate" GATED(                                                              \
        "_exps", ".mlp.experts.#.") " .ffn_gate_up_exps.weight=.mlp.experts.gate_up_proj"
#define SHARED_EXPERT                                                                              \
    GATED("_shexp", ".mlp.shared_expert.")                                                         \
    " .ffn_gate_inp_shexp=.mlp.shared_expert_gate:one_row"
#define SHARED_EXPERTS GATED("_shexp", ".mlp.shared_experts.")
#define CHOICE_BIAS    " .exp_probs_b.bias=.mlp.gate.e_score_correction_bias"
#define GRANITE_EXPERTS                                                                            \
    " .ffn_gate_exps&.ffn_up_exps=.block_sparse_moe.input_linear:both_experts .ffn_up_exps "       \
    ".ffn_down_exps=.block_sparse_moe.output_linear .ffn_gate_inp=.block_sparse_moe.router.layer " \
    ".ffn_gate_shexp&.ffn_up_shexp=.shared_mlp.input_linear:both_rows .ffn_up_shexp "              \
    ".ffn_down_shexp=.shared_mlp.output_linear"
#define BLOCK_SPARSE                                                                               \
    " .ffn_gate_inp=.block_sparse_moe.gate .ffn_gate_exps=.block_sparse_moe.experts.#.w1 "         \
    ".ffn_down_exps=.block_sparse_moe.experts.#.w2 .ffn_up_exps=.block_sparse_moe.experts.#.w3 "   \
    ".exp_probs_b.bias=.block_sparse_moe.e_score_correction_bias"

/* ---- dense models, and mixtral ---- */

#define POST_NORMS POST_ATTENTION_NORM " .post_ffw_norm=.post_feedforward_layernorm"
#define HUNYUAN_NORMS                                                                              \
    " .attn_q_norm=.self_attn.query_layernorm .attn_k_norm=.self_attn.key_layernorm"
#define GLM                                                                                        \
    " .ffn_up=.mlp.gate_up_proj .post_attention_norm=.post_self_attn_layernorm "                   \
    ".post_ffw_norm=.post_mlp_layernorm"

const char gguf_naming_mixtral[] = LAYERS ROTATED FRAME BLOCK_SPARSE;
const char gguf_naming_llama[] = LAYERS ROTATED DENSE;
const char gguf_naming_llama_plain[] = LAYERS DENSE;
/* The converter reorders rows of the weights alone. */
const char gguf_naming_olmo[] =
    LAYERS " .attn_q.bias=.self_attn.q_proj.bias .attn_k.bias=.self_attn.k_proj.bias" ROTATED DENSE;
const char gguf_naming_olmo3[] = LAYERS POST_NORMS DENSE;
const char gguf_naming_apertus[] =
    LAYERS " .attn_norm=.attention_layernorm .ffn_norm=.feedforward_layernorm "
           "/xielu.alpha_n=.mlp.act_fn.alpha_n:flat /xielu.alpha_p=.mlp.act_fn.alpha_p:flat "
           "/xielu.beta=.mlp.act_fn.beta /xielu.eps=.mlp.act_fn.eps" DENSE;
const char gguf_naming_seed_oss[] = LAYERS POST_ATTENTION_NORM DENSE;
const char gguf_naming_hunyuan_v1_dense[] = LAYERS HUNYUAN_NORMS DENSE;
const char gguf_naming_glm[] = LAYERS GLM DENSE;
const char gguf_naming_glm4[] =
    LAYERS GLM " .attn_q=.self_attn.q_proj:halves_q .attn_k=.self_attn.k_proj:halves_k" DENSE;
const char gguf_naming_phi3[] =
    LAYERS " .attn_qkv=.self_attn.qkv_proj .attn_output=.self_attn.o_proj "
           ".ffn_up=.mlp.gate_up_proj" EMBEDDING NORM MLP;
const char gguf_naming_bitnet[] =
    LAYERS " .attn_sub_norm=.self_attn.attn_sub_norm .ffn_sub_norm=.mlp.ffn_sub_norm" DENSE;
const char gguf_naming_nemotron[] =
    LAYERS " output_norm.weight=model.norm.weight:plus_one "
           ".attn_norm.weight=.input_layernorm.weight:plus_one "
           ".ffn_norm.weight=.post_attention_layernorm.weight:plus_one" DENSE;
const char gguf_naming_starcoder2[] = LAYERS " .ffn_up=.mlp.c_fc .ffn_down=.mlp.c_proj" DENSE;
const char gguf_naming_stablelm[] =
    LAYERS " .attn_q_norm.weight=.self_attn.q_layernorm.norms.#.weight "
           ".attn_k_norm.weight=.self_attn.k_layernorm.norms.#.weight" DENSE;

/* ---- mixtures of experts ---- */

#define SHARED_MLP GATED("_shexp", ".mlp.shared_mlp.")

const char gguf_naming_qwen2_moe[] = LAYERS SHARED_EXPERT DENSE EXPERTS;
const char gguf_naming_qwen3_moe[] = LAYERS DENSE EXPERTS;
const char gguf_naming_granitemoeshared[] = LAYERS GRANITE_EXPERTS ROTATED FRAME;
const char gguf_naming_gpt_oss[] = LAYERS POST_ATTENTION_NORM SINKS
    " .ffn_gate_inp=.mlp.router "
    ".ffn_gate_exps.weight&.ffn_up_exps.weight=.mlp.experts.gate_up_proj:alternating "
    ".ffn_gate_exps.bias&.ffn_up_exps.bias=.mlp.experts.gate_up_proj_bias:alternating "
    ".ffn_up_exps .ffn_down_exps.weight=.mlp.experts.down_proj:transposed "
    ".ffn_down_exps.bias=.mlp.experts.down_proj_bias" DENSE EXPERTS;
const char gguf_naming_llama4[] = LAYERS GATED("", ".feed_forward.") GATED(
    "_shexp",
    ".feed_forward.shared_expert.") " .ffn_gate_inp=.feed_forward.router "
                                    ".ffn_gate_exps.weight&.ffn_up_exps.weight="
                                    ".feed_forward.experts.gate_up_proj:both_columns "
                                    ".ffn_up_exps .ffn_down_exps.weight="
                                    ".feed_forward.experts.down_proj:transposed" DENSE EXPERTS;
const char gguf_naming_glm4_moe[] =
    LAYERS POST_ATTENTION_NORM CHOICE_BIAS SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_dots1[] = LAYERS CHOICE_BIAS SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_exaone_moe[] =
    LAYERS " .exp_probs_b.bias=.mlp.e_score_correction_bias" SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_ernie4_5_moe[] = LAYERS
    " .exp_probs_b.bias=.mlp.moe_statics.e_score_correction_bias:one_row" SHARED_EXPERTS DENSE
        EXPERTS;
const char gguf_naming_hunyuan_v1_moe[] =
    LAYERS HUNYUAN_NORMS " .ffn_gate_inp=.mlp.gate.wg" SHARED_MLP DENSE EXPERTS;
const char gguf_naming_hy_v3[] =
    LAYERS " .exp_probs_b=.mlp.expert_bias .ffn_gate_inp=.mlp.router.gate" SHARED_MLP DENSE EXPERTS;
const char gguf_naming_afmoe[] =
    LAYERS POST_ATTENTION_NORM " .ffn_norm=.pre_mlp_layernorm .post_ffw_norm=.post_mlp_layernorm "
                               ".attn_gate=.self_attn.gate_proj .ffn_gate_inp=.mlp.router.gate "
                               ".exp_probs_b.bias=.mlp.expert_bias" SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_laguna[] =
    LAYERS " .attn_gate=.self_attn.g_proj "
           ".exp_probs_b.bias=.mlp.experts.e_score_correction_bias" SHARED_EXPERT DENSE EXPERTS;
const char gguf_naming_cohere2_moe[] = LAYERS SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_minimax_m2[] = LAYERS BLOCK_SPARSE DENSE EXPERTS;

/* ---- Gemma; the norms of 1 to 3 have 1 added ---- */

#define GEMMA_NORMS                                                                                \
    " output_norm=model.norm:plus_one .attn_norm=.input_layernorm:plus_one "                       \
    ".attn_q_norm=.self_attn.q_norm:plus_one .attn_k_norm=.self_attn.k_norm:plus_one"
#define GEMMA3N                                                                                    \
    " per_layer_token_embd=model.embed_tokens_per_layer "                                          \
    "per_layer_model_proj=model.per_layer_model_projection "                                       \
    "per_layer_proj_norm=model.per_layer_projection_norm altup_proj=model.altup_projections.# "    \
    "altup_unembd_proj=model.altup_unembed_projections.# "                                         \
    ".altup_correct_scale.weight=.altup.correct_output_scale "                                     \
    ".altup_correct_coef=.altup.correction_coefs .altup_predict_coef=.altup.prediction_coefs "     \
    ".altup_router=.altup.modality_router .altup_router_norm=.altup.router_norm "                  \
    ".laurel_l=.laurel.linear_left .laurel_r=.laurel.linear_right "                                \
    ".laurel_post_norm=.laurel.post_laurel_norm .inp_gate=.per_layer_input_gate "                  \
    ".proj=.per_layer_projection .post_norm=.post_per_layer_input_norm "                           \
    ".ffn_norm=.pre_feedforward_layernorm" POST_NORMS

const char gguf_naming_gemma[] =
    LAYERS GEMMA_NORMS " .ffn_norm=.post_attention_layernorm:plus_one" DENSE;
const char gguf_naming_gemma2[] =
    LAYERS GEMMA_NORMS " .post_attention_norm=.post_attention_layernorm:plus_one "
                       ".ffn_norm=.pre_feedforward_layernorm:plus_one "
                       ".post_ffw_norm=.post_feedforward_layernorm:plus_one" DENSE;
const char gguf_naming_gemma3n[] = LAYERS GEMMA3N DENSE;
const char gguf_naming_gemma4[] =
    LAYERS " .layer_output_scale.weight=.layer_scalar .ffn_gate_inp.weight=.router.proj.weight "
           ".ffn_gate_inp.scale=.router.scale .ffn_gate_up_exps.weight=.experts.gate_up_proj "
           ".ffn_down_exps.weight=.experts.down_proj "
           ".ffn_down_exps.scale=.router.per_expert_scale "
           ".post_ffw_norm_1=.post_feedforward_layernorm_1 "
           ".post_ffw_norm_2=.post_feedforward_layernorm_2 "
           ".pre_ffw_norm_2=.pre_feedforward_layernorm_2" GEMMA3N DENSE;

/* ---- GPT-2 and models of its time ---- */

#define GPT                                                                                        \
    "transformer.h.% token_embd=transformer.wte position_embd=transformer.wpe "                    \
    "output_norm=transformer.ln_f output=lm_head .attn_norm=.ln_1 .ffn_norm=.ln_2"
#define DENSE_4H ".ffn_up=.mlp.dense_h_to_4h .ffn_down=.mlp.dense_4h_to_h"
#define FALCON                                                                                     \
    " token_embd=transformer.word_embeddings output_norm=transformer.ln_f output=lm_head "         \
    ".attn_qkv=.self_attention.query_key_value:qkv_by_group "                                      \
    ".attn_output=.self_attention.dense " DENSE_4H

const char gguf_naming_gpt2[] =
    GPT " .attn_qkv=.attn.c_attn:transposed .attn_output=.attn.c_proj:transposed "
        ".ffn_up=.mlp.c_fc:transposed .ffn_down=.mlp.c_proj:transposed";
const char gguf_naming_gpt_bigcode[] =
    GPT " .attn_qkv=.attn.c_attn .attn_output=.attn.c_proj .ffn_up=.mlp.c_fc .ffn_down=.mlp.c_proj";
const char gguf_naming_gptj[] =
    GPT " .attn_q=.attn.q_proj .attn_k=.attn.k_proj .attn_v=.attn.v_proj "
        ".attn_output=.attn.out_proj .ffn_up=.mlp.fc_in .ffn_down=.mlp.fc_out";
const char gguf_naming_bloom[] =
    "transformer.h.% token_embd=transformer.word_embeddings "
    "token_embd_norm=transformer.word_embeddings_layernorm output_norm=transformer.ln_f "
    "output=lm_head" NORM " .attn_qkv=.self_attention.query_key_value:qkv_by_head "
    ".attn_output=.self_attention.dense " DENSE_4H;
const char gguf_naming_gpt_neox[] =
    "gpt_neox.layers.% token_embd=gpt_neox.embed_in output_norm=gpt_neox.final_layer_norm "
    "output=embed_out" NORM " .attn_qkv=.attention.query_key_value:qkv_by_head "
    ".attn_output=.attention.dense " DENSE_4H;
const char gguf_naming_falcon[] = "transformer.h.% .attn_norm_2=.ln_attn .attn_norm=.ln_mlp" FALCON;
const char gguf_naming_falcon_plain[] = "transformer.h.% .attn_norm=.input_layernorm" FALCON;
const char gguf_naming_mpt[] =
    "transformer.blocks.% token_embd=transformer.wte output_norm=transformer.norm_f output=lm_head "
    ".attn_norm=.norm_1 .ffn_norm=.norm_2 .attn_qkv=.attn.Wqkv .attn_output=.attn.out_proj "
    ".ffn_up=.ffn.up_proj .ffn_down=.ffn.down_proj";
const char gguf_naming_dbrx[] =
    "transformer.blocks.% token_embd=transformer.wte output_norm=transformer.norm_f output=lm_head "
    ".attn_norm=.norm_attn_norm.norm_1 .attn_output_norm=.norm_attn_norm.norm_2 "
    ".attn_qkv=.norm_attn_norm.attn.Wqkv .attn_output=.norm_attn_norm.attn.out_proj "
    ".ffn_gate_inp=.ffn.router.layer .ffn_gate_exps.weight=.ffn.experts.mlp.w1:by_rows "
    ".ffn_up_exps.weight=.ffn.experts.mlp.v1:by_rows "
    ".ffn_down_exps.weight=.ffn.experts.mlp.w2:by_columns";
const char gguf_naming_phi[] =
    LAYERS " output_norm=model.final_layernorm .attn_output=.self_attn.dense .ffn_up=.mlp.fc1 "
           ".ffn_down=.mlp.fc2" FRAME;

/* ---- hybrids with linear attention, short convolutions or windows ---- */

/* Norms have 1 added, except the norm of linear attention. */
#define LINEAR                                                                                     \
    GEMMA_NORMS " .post_attention_norm=.post_attention_layernorm:plus_one "                        \
                ".ssm_norm=.linear_attn.norm" EMBEDDING ATTENTION
#define QWEN3_5                                                                                    \
    LAYERS " .ssm_a=.linear_attn.A_log:minus_exp:value_rows "                                      \
           ".ssm_dt.bias=.linear_attn.dt_bias:value_rows "                                         \
           ".ssm_conv1d.weight=.linear_attn.conv1d.weight:value_rows_of_conv "                     \
           ".ssm_alpha=.linear_attn.in_proj_a:value_rows "                                         \
           ".ssm_beta=.linear_attn.in_proj_b:value_rows "                                          \
           ".attn_qkv=.linear_attn.in_proj_qkv:value_rows_after_qk "                               \
           ".attn_gate=.linear_attn.in_proj_z:value_rows "                                         \
           ".ssm_out=.linear_attn.out_proj:value_columns" LINEAR

const char gguf_naming_qwen3_next[] =
    LAYERS " .ssm_a=.linear_attn.A_log:minus_exp .ssm_dt.bias=.linear_attn.dt_bias "
           ".ssm_conv1d.weight=.linear_attn.conv1d.weight:no_middle "
           ".ssm_ba=.linear_attn.in_proj_ba .ssm_out=.linear_attn.out_proj "
           ".attn_qkv&.attn_gate=.linear_attn.in_proj_qkvz:qkvz_by_head "
           ".attn_gate" LINEAR SHARED_EXPERT EXPERTS MLP;
const char gguf_naming_qwen3_5[] = QWEN3_5 MLP;
const char gguf_naming_qwen3_5_moe[] = QWEN3_5 SHARED_EXPERT EXPERTS;
const char gguf_naming_lfm2[] =
    LAYERS " token_embd_norm=model.embedding_norm output_norm=model.embedding_norm "
           ".attn_norm=.operator_norm .ffn_norm=.ffn_norm .attn_output=.self_attn.out_proj "
           ".attn_q_norm=.self_attn.q_layernorm .attn_k_norm=.self_attn.k_layernorm "
           ".shortconv.conv.weight=.conv.conv.weight:no_middle "
           ".shortconv.conv.bias=.conv.conv.bias .shortconv.in_proj=.conv.in_proj "
           ".shortconv.out_proj=.conv.out_proj .ffn_gate=.feed_forward.w1 "
           ".ffn_down=.feed_forward.w2 .ffn_up=.feed_forward.w3 .ffn_gate_inp=.feed_forward.gate "
           ".exp_probs_b.bias=.feed_forward.expert_bias "
           ".ffn_gate_exps=.feed_forward.experts.#.w1 .ffn_down_exps=.feed_forward.experts.#.w2 "
           ".ffn_up_exps=.feed_forward.experts.#.w3" EMBEDDING ATTENTION;
const char gguf_naming_mimo_v2_flash[] = LAYERS SINKS CHOICE_BIAS DENSE EXPERTS;

/* ---- latent attention ---- */

/* The converter splits kv_b; older versions also kept it whole. */
#define LATENT                                                                                     \
    " .attn_q_a=.self_attn.q_a_proj .attn_q_a_norm=.self_attn.q_a_layernorm "                      \
    ".attn_q_b=.self_attn.q_b_proj .attn_kv_a_mqa=.self_attn.kv_a_proj_with_mqa "                  \
    ".attn_kv_a_norm=.self_attn.kv_a_layernorm "                                                   \
    ".attn_k_b&.attn_v_b!.attn_kv_b=.self_attn.kv_b_proj:latent_kv "                               \
    ".attn_kv_b=.self_attn.kv_b_proj .attn_v_b"

const char gguf_naming_deepseek_v3[] = LAYERS LATENT CHOICE_BIAS SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_deepseek_v2[] = LAYERS LATENT SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_deepseek_v32[] = LAYERS LATENT
    " .indexer.k_norm=.self_attn.indexer.k_norm "
    ".indexer.proj=.self_attn.indexer.weights_proj "
    ".indexer.attn_k=.self_attn.indexer.wk "
    ".indexer.attn_q_b=.self_attn.indexer.wq_b" CHOICE_BIAS SHARED_EXPERTS DENSE EXPERTS;
const char gguf_naming_minicpm3[] = LAYERS LATENT DENSE EXPERTS;
const char gguf_naming_kimi_linear[] = LAYERS
    " .ssm_a=.self_attn.A_log:minus_exp:third .ssm_dt.bias=.self_attn.dt_bias "
    ".ssm_beta=.self_attn.b_proj .ssm_f_a=.self_attn.f_a_proj .ssm_f_b=.self_attn.f_b_proj "
    ".ssm_g_a=.self_attn.g_a_proj .ssm_g_b=.self_attn.g_b_proj .ssm_norm=.self_attn.o_norm "
    ".ssm_conv1d_q=.self_attn.q_conv1d:no_middle .ssm_conv1d_k=.self_attn.k_conv1d:no_middle "
    ".ssm_conv1d_v=.self_attn.v_conv1d:no_middle" LATENT CHOICE_BIAS SHARED_EXPERTS BLOCK_SPARSE
        DENSE;

/* ---- Mamba, and hybrids of it and attention ---- */

#define MAMBA                                                                                      \
    " token_embd=backbone.embeddings output_norm=backbone.norm_f output=lm_head .attn_norm=.norm " \
    ".ssm_in=.mixer.in_proj .ssm_out=.mixer.out_proj "                                             \
    ".ssm_conv1d.weight=.mixer.conv1d.weight:no_middle .ssm_conv1d.bias=.mixer.conv1d.bias"
#define MAMBA2                                                                                     \
    " .ssm_a=.mixer.A_log:minus_exp:flat .ssm_d=.mixer.D:flat .ssm_dt.bias=.mixer.dt_bias "        \
    ".ssm_norm=.mixer.norm:flat"
#define HYBRID_SSM                                                                                 \
    " .ssm_in=.mamba.in_proj .ssm_out=.mamba.out_proj "                                            \
    ".ssm_conv1d.weight=.mamba.conv1d.weight:no_middle .ssm_conv1d.bias=.mamba.conv1d.bias"
#define HYBRID_MAMBA2                                                                              \
    HYBRID_SSM " .ssm_a=.mamba.A_log:minus_exp:flat .ssm_d=.mamba.D:flat "                         \
               ".ssm_dt.bias=.mamba.dt_bias .ssm_norm=.mamba.norm:flat"
#define BAMBA                                                                                      \
    " output_norm=model.final_layernorm .ffn_norm=.pre_ff_layernorm" GATED("", ".feed_forward.")

const char gguf_naming_falcon_mamba[] =
    "backbone.layers.%" MAMBA " .ssm_a=.mixer.A_log:minus_exp .ssm_d=.mixer.D .ssm_x=.mixer.x_proj "
    ".ssm_dt=.mixer.dt_proj";
const char gguf_naming_mamba2[] = "backbone.layers.%" MAMBA MAMBA2;
const char gguf_naming_bamba[] = LAYERS BAMBA HYBRID_MAMBA2 ROTATED FRAME;
/* Without experts, the shared feed-forward is the only one. */
const char gguf_naming_granitemoehybrid[] =
    LAYERS " .ffn_gate&.ffn_up=.shared_mlp.input_linear:both_rows .ffn_up "
           ".ffn_down=.shared_mlp.output_linear" GRANITE_EXPERTS HYBRID_MAMBA2 ROTATED FRAME;
const char gguf_naming_jamba[] = LAYERS BAMBA HYBRID_SSM
    " .ssm_a=.mamba.A_log:minus_exp .ssm_d=.mamba.D .ssm_x=.mamba.x_proj "
    ".ssm_dt=.mamba.dt_proj .ssm_dt_norm=.mamba.dt_layernorm "
    ".ssm_b_norm=.mamba.b_layernorm .ssm_c_norm=.mamba.c_layernorm "
    ".ffn_gate_inp=.feed_forward.router" GATED("_exps", ".feed_forward.experts.#.") FRAME;
const char gguf_naming_falcon_h1[] =
    LAYERS " .ffn_norm.weight=.pre_ff_layernorm.weight "
           ".ffn_norm=.pre_ff_layernorm.weight" BAMBA HYBRID_MAMBA2 FRAME;
const char gguf_naming_nemotron_h[] =
    "backbone.layers.% .attn_q=.mixer.q_proj:pairs_q .attn_k=.mixer.k_proj:pairs_k "
    ".attn_v=.mixer.v_proj .attn_output=.mixer.o_proj .ffn_up=.mixer.up_proj "
    ".ffn_down=.mixer.down_proj .ffn_gate_inp=.mixer.gate "
    ".exp_probs_b.bias=.mixer.gate.e_score_correction_bias "
    ".ffn_up_exps=.mixer.experts.#.up_proj .ffn_down_exps=.mixer.experts.#.down_proj "
    ".ffn_up_shexp=.mixer.shared_experts.up_proj "
    ".ffn_down_shexp=.mixer.shared_experts.down_proj" MAMBA MAMBA2;

/* ---- reading them ---- */

/* Room for the prefixes and NULs of a word's names. */
enum { PREFIX_BYTES = 32, ROOM_PER_WORD = 4 * PREFIX_BYTES };

/* Copy the name at *at, with a prefix if it begins with '.', and step over both. */
static const char *copy_name(const char **at, const char *prefix, char **room)
{
    const size_t n = strcspn(*at, "&!=: ");
    const char *name = *room;

    *room += sprintf(*room, "%s%.*s", **at == '.' ? prefix : "", (int)n, *at) + 1;
    *at += n;
    return name;
}

static void set_option(struct gguf_rename *rename, struct gguf_string option)
{
    if (gguf_string_equals(option, "plus_one"))
        rename->change = GGUF_PLUS_ONE;
    else if (gguf_string_equals(option, "minus_exp"))
        rename->change = GGUF_MINUS_EXP;
    else
        rename->order = gguf_order_find(option);
}

int gguf_names_read(const char *naming, struct gguf_names *names)
{
    const char *at = naming + strcspn(naming, " ");
    char prefix[PREFIX_BYTES], *room;
    size_t n = 0;

    for (const char *word = at; *word != '\0'; word++)
        n += *word == ' ';
    snprintf(prefix, sizeof prefix, "%.*s", (int)(at - naming), naming);
    *names = (struct gguf_names){
        .list = calloc(1, n * (sizeof *names->list + ROOM_PER_WORD) + strlen(naming))};
    if (!names->list)
        return -ENOMEM;
    room = (char *)&names->list[n];
    while (*at++ == ' ') {
        struct gguf_rename *rename = &names->list[names->count++];

        rename->is_key = *at == '/';
        at += rename->is_key;
        rename->name = copy_name(&at, "blk.%", &room);
        if (*at == '&' && at++)
            rename->with = copy_name(&at, "blk.%", &room);
        if (*at == '!' && at++)
            rename->unless = copy_name(&at, "blk.%", &room);
        if (*at == '=' && at++)
            rename->other = copy_name(&at, prefix, &room);
        for (; *at == ':'; at += n) {
            n = strcspn(++at, ": ");
            set_option(rename, (struct gguf_string){at, n});
        }
    }
    return 0;
}

void gguf_names_free(struct gguf_names *names)
{
    free(names->list);
    *names = (struct gguf_names){0};
}

const struct gguf_rename *gguf_rename_of(const struct gguf_names *names, struct gguf_string name,
                                         struct gguf_name_match *match)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct gguf_rename *rename = &names->list[i];

        if (!rename->is_key && gguf_tensor_name_matches(name, rename->name, match))
            return rename;
    }
    return NULL;
}
