/* Words of config.json that rows of the table of checkpoints share. Only hf_rows.c includes it. */
#pragma once

/* ---- members that several rows share ---- */

#define COMMON_SIZES                                                                               \
    " hidden_size=embedding_length num_hidden_layers@n_layer "                                     \
    "num_attention_heads=attention.head_count max_position_embeddings=context_length"
#define SIZES COMMON_SIZES " intermediate_size=feed_forward_length num_key_value_heads@n_head_kv"
/* of models that may lack dense layers */
#define MOE_SIZES                                                                                  \
    COMMON_SIZES " intermediate_size=feed_forward_length? num_key_value_heads@n_head_kv"
/* where keys have a number per layer, 0 for layers without attention */
#define HYBRID_SIZES                                                                               \
    " hidden_size=embedding_length intermediate_size@largest/feed_forward_length "                 \
    "num_hidden_layers@n_layer num_attention_heads@largest/attention.head_count "                  \
    "num_key_value_heads@hybrid_n_head_kv max_position_embeddings=context_length"
/* The key feed_forward_length is of experts, also in a file that has only the shared expert. */
#define GRANITE_SIZES                                                                              \
    COMMON_SIZES " intermediate_size@rows/blk.%.ffn_up.weight num_key_value_heads@n_head_kv"

#define OF_QKV            "/attn_q/attn_k/attn_v"
#define HEAD_DIM          " head_dim@head_dim"
#define OPTIONAL_HEAD_DIM " head_dim=attention.key_length?"
#define RMS_NORM          " rms_norm_eps=attention.layer_norm_rms_epsilon"
#define LAYER_NORM        " layer_norm_eps=attention.layer_norm_epsilon"
#define ATTENTION_BIAS    " attention_bias@has/blk.%.attn_q.bias" OF_QKV "/attn_output"
#define USE_BIAS          " use_bias@has/blk.%.attn_q.bias" OF_QKV "/attn_output"
#define MLP_BIAS          " mlp_bias@has/blk.%.ffn_up.bias/ffn_gate/ffn_up/ffn_down"
#define BIASES            ATTENTION_BIAS MLP_BIAS
#define SILU              " hidden_act:'silu'"
#define RELU_SQUARED      " hidden_act:'relu2'"
#define GELU              " hidden_activation:'gelu_pytorch_tanh'"
#define ROPE              " rope@rope"
#define PARTIAL_ROPE      " partial_rotary_factor@rope"
#define BASE              RMS_NORM SILU ROPE
#define WINDOW            " sliding_window@window"
#define WINDOWS           WINDOW " layer_types@layer_types/"
#define NO_WINDOW         " use_sliding_window:false"

#define BY_SOFTMAX " expert_gating_func@gating/1"
#define BY_SIGMOID " expert_gating_func@gating/2"
/* llama.cpp's converter reads the member. */
#define SIGMOID_SCORES    BY_SIGMOID " scoring_func:'sigmoid'"
#define MLP_KINDS         " mlp_layer_types@kinds/blk.%.ffn_gate_inp.weight/sparse/dense"
#define NUM_EXPERTS       " num_experts=expert_count num_experts_per_tok=expert_used_count"
#define NUM_LOCAL_EXPERTS " num_local_experts=expert_count num_experts_per_tok=expert_used_count"
#define SHARED_COUNT      " num_shared_experts=expert_shared_count:0"
#define EXPERT_WIDTH      " moe_intermediate_size=expert_feed_forward_length"
#define EXPERT_GROUPS     " n_group=expert_group_count:1 topk_group=expert_group_used_count:1"
#define EXPERT_SCALE      " routed_scaling_factor=expert_weights_scale:1.0"
#define NORMED_IF         " norm_topk_prob=expert_weights_norm:false"
#define NORMED            " norm_topk_prob:true"
#define NOT_NORMED        " norm_topk_prob:false"
#define NO_NEXTN          " num_nextn_predict_layers:0"
#define QK_NORM           " use_qk_norm@has/blk.%.attn_q_norm.weight"
/* The width of an expert comes from a shape: its key may be missing. */
#define ROUTED                                                                                     \
    " n_routed_experts=expert_count? num_experts_per_tok=expert_used_count? "                      \
    "n_shared_experts@n_shared moe_intermediate_size@columns/blk.%.ffn_down_exps.weight "          \
    "first_k_dense_replace@n_dense" EXPERT_SCALE NORMED_IF EXPERT_GROUPS
#define SHARED_WIDTH " shared_expert_intermediate_size=expert_shared_feed_forward_length"
#define CHOICE_BIAS  "blk.%.exp_probs_b.bias"
#define LOGITS       " logits_scaling=logit_scale:1.0"
#define GRANITE_SCALES                                                                             \
    " embedding_multiplier=embedding_scale:1.0 residual_multiplier=residual_scale:1.0 "            \
    "attention_multiplier@attention_scale"

/* of recurrent layers */
#define SSM_HEAD_DIM "@quotient/ssm.inner_size/ssm.time_step_rank"
#define SSM_EXPAND   "@quotient/ssm.inner_size/embedding_length"
#define CONV_BIAS    "@has/blk.%.ssm_conv1d.bias"

/* ---- members of few rows ---- */

#define COHERE " logit_scale=logit_scale" ATTENTION_BIAS
#define QWEN3  SIZES BASE HEAD_DIM ATTENTION_BIAS

/* Files of early 2024 have no keys for these sizes. */
#define QWEN2MOE                                                                                   \
    " moe_intermediate_size@rows/blk.%.ffn_up_exps.weight "                                        \
    "shared_expert_intermediate_size@rows/blk.%.ffn_up_shexp.weight "                              \
    "qkv_bias@has/blk.%.attn_q.bias" OF_QKV NOT_NORMED NO_WINDOW
#define QWEN3MOE QWEN3 NUM_EXPERTS EXPERT_WIDTH NORMED NO_WINDOW
#define GRANITEMOE                                                                                 \
    SIZES BASE ATTENTION_BIAS NUM_LOCAL_EXPERTS GRANITE_SCALES LOGITS                              \
        " shared_intermediate_size=expert_shared_feed_forward_length?"

/* Norms of queries and keys have no weights. The models with 128 experts lack them. */
#define LLAMA4                                                                                     \
    COMMON_SIZES                                                                                   \
    " intermediate_size=expert_feed_forward_length intermediate_size_mlp=feed_forward_length "     \
    "num_key_value_heads@n_head_kv interleave_moe_layer_step=interleave_moe_layer_step? "          \
    "moe_layers@layers_with/blk.%.ffn_gate_inp.weight "                                            \
    "use_qk_norm@equals/expert_count/0/128/false/true"
#define ERNIE_MOE                                                                                  \
    " moe_num_experts=expert_count moe_k=expert_used_count" EXPERT_WIDTH                           \
    " moe_num_shared_experts=expert_shared_count:0 "                                               \
    "moe_layer_interval=interleave_moe_layer_step:1 moe_layer_start_index@n_dense "                \
    "moe_layer_end_index@last_layer" USE_BIAS
#define HY_V3                                                                                      \
    EXPERT_WIDTH " router_scaling_factor=expert_weights_scale:1.0" MLP_KINDS                       \
                 " num_shared_experts:1 expert_weights_norm@normed" BY_SIGMOID
#define AFMOE                                                                                      \
    EXPERT_WIDTH SHARED_COUNT " num_dense_layers@n_dense route_scale=expert_weights_scale:1.0 "    \
                              "route_norm=expert_weights_norm:false" WINDOWS "4"                   \
                              " global_attn_every_n_layers:4 mup_enabled:true" BY_SIGMOID
#define LAGUNA                                                                                     \
    " hidden_size=embedding_length intermediate_size=feed_forward_length "                         \
    "num_hidden_layers@n_layer num_attention_heads@largest/attention.head_count "                  \
    "num_key_value_heads@largest/attention.head_count_kv "                                         \
    "max_position_embeddings=context_length" EXPERT_WIDTH SHARED_WIDTH                             \
    " moe_routed_scaling_factor=expert_weights_scale:1.0 "                                         \
    "expert_weights_norm@normed" WINDOWS "4/first num_attention_heads_per_layer@heads" MLP_KINDS   \
    " partial_rotary_factor@rope_by_type/0/new" BY_SIGMOID
#define COHERE2MOE                                                                                 \
    " logit_scale=logit_scale" NORMED_IF SHARED_COUNT                                              \
    " intermediate_size@largest/expert_feed_forward_length "                                       \
    "prefix_dense_intermediate_size=feed_forward_length" WINDOWS "key" MLP_KINDS                   \
    " expert_selection_fn@equals/expert_gating_func/2/1/'softmax'/'sigmoid'"

/* Models with so many layers have the scalar of 27B parameters. */
#define GEMMA2                                                                                     \
    GELU " query_pre_attn_scalar@query_scalar/46 "                                                 \
         "attn_logit_softcapping=attn_logit_softcapping:50.0 "                                     \
         "final_logit_softcapping=final_logit_softcapping:30.0" WINDOWS "2"
#define GEMMA3                                                                                     \
    GELU " query_pre_attn_scalar@query_scalar/62 attn_logit_softcapping:null "                     \
         "final_logit_softcapping=final_logit_softcapping:null" WINDOWS "6"                        \
         " rope@rope_by_type/10000"
#define PER_LAYER_VOCABULARY " vocab_size_per_layer_input@rows/per_layer_token_embd.weight"
#define GEMMA3N                                                                                    \
    GELU " final_logit_softcapping=final_logit_softcapping:30.0 "                                  \
         "hidden_size_per_layer_input=embedding_length_per_layer_input" PER_LAYER_VOCABULARY       \
         " laurel_rank@rows/blk.%.laurel_l.weight altup_num_inputs=altup.num_inputs "              \
         "altup_active_idx=altup.active_idx altup_correct_scale@has/blk.%.altup_correct_scale "    \
         "num_kv_shared_layers@n_shared_kv activation_sparsity_pattern@sparsity" WINDOWS "5"       \
         " rope@rope_by_type/10000"
#define GEMMA4                                                                                     \
    COMMON_SIZES                                                                                   \
    " head_dim=attention.key_length_swa global_head_dim=attention.key_length "                     \
    "heads@gemma4_heads" GELU " final_logit_softcapping=final_logit_softcapping:30.0 "             \
    "hidden_size_per_layer_input=embedding_length_per_layer_input:0" PER_LAYER_VOCABULARY          \
    " num_kv_shared_layers=attention.shared_kv_layers:0 "                                          \
    "enable_moe_block@has/blk.%.ffn_gate_inp.weight num_experts=expert_count:null "                \
    "top_k_experts=expert_used_count:null "                                                        \
    "moe_intermediate_size=expert_feed_forward_length:null" WINDOWS "key"                          \
    " rope@gemma4_rope"

#define EPSILON " layer_norm_epsilon=attention.layer_norm_epsilon"
/*
 * Converters write 4 · n_embd as feed_forward_length, whatever the size is. n_ctx is for
 * llama.cpp's converter.
 */
#define GPT                                                                                        \
    " n_embd=embedding_length n_layer@n_layer n_head=attention.head_count "                        \
    "n_positions=context_length n_ctx=context_length n_inner@rows/blk.0.ffn_up.weight" EPSILON
#define BLOOM                                                                                      \
    " hidden_size=embedding_length n_layer@n_layer n_head=attention.head_count" EPSILON            \
    " seq_length=context_length?"
#define GPTNEOX                                                                                    \
    COMMON_SIZES " intermediate_size=feed_forward_length" LAYER_NORM                               \
                 " use_parallel_residual=use_parallel_residual:true "                              \
                 "attention_bias@has/blk.%.attn_output.bias rotary_pct@rope"
#define FALCON                                                                                     \
    " hidden_size=embedding_length ffn_hidden_size@rows/blk.0.ffn_up.weight "                      \
    "num_hidden_layers@n_layer num_attention_heads=attention.head_count num_kv_heads@n_head_kv "   \
    "max_position_embeddings=context_length:2048" EPSILON                                          \
    " alibi:false multi_query:true parallel_attn:true new_decoder_architecture@decoder "           \
    "bias@has/blk.%.attn_qkv.bias/attn_qkv/attn_output/ffn_up/ffn_down" ROPE
#define MPT_SIZES                                                                                  \
    " d_model=embedding_length n_layers@n_layer n_heads=attention.head_count "                     \
    "max_seq_len=context_length"
#define PHI2                                                                                       \
    COMMON_SIZES " intermediate_size@rows/blk.%.ffn_up.weight num_key_value_heads@n_head_kv "      \
                 "hidden_act:'gelu_new' qk_layernorm:false" LAYER_NORM PARTIAL_ROPE

#define LINEAR                                                                                     \
    MOE_SIZES HEAD_DIM RMS_NORM SILU PARTIAL_ROPE                                                  \
        " layer_types@kinds/blk.%.ssm_out.weight/linear_attention/full_attention "                 \
        "linear_value_head_dim" SSM_HEAD_DIM " linear_conv_kernel_dim=ssm.conv_kernel "            \
        "linear_key_head_dim=ssm.state_size linear_num_key_heads=ssm.group_count "                 \
        "linear_num_value_heads=ssm.time_step_rank" ATTENTION_BIAS
#define LINEAR_EXPERTS NUM_EXPERTS EXPERT_WIDTH SHARED_WIDTH NORMED
#define LFM2                                                                                       \
    HYBRID_SIZES " norm_eps=attention.layer_norm_rms_epsilon conv_L_cache=shortconv.l_cache "      \
                 "block_auto_adjust_ff_dim:false "                                                 \
                 "layer_types@kinds/blk.%.attn_q.weight/full_attention/conv" ROPE
#define LFM2MOE                                                                                    \
    EXPERT_WIDTH NUM_EXPERTS " num_dense_layers@n_dense" EXPERT_SCALE                              \
                             " use_expert_bias@has/blk.%.exp_probs_b.bias" NORMED BY_SIGMOID
#define MIMO2                                                                                      \
    COMMON_SIZES " intermediate_size=feed_forward_length? num_key_value_heads@full_n_head_kv "     \
                 "v_head_dim=attention.value_length "                                              \
                 "attention_value_scale=attention.value_scale:null" WINDOWS "key" MLP_KINDS        \
                 " partial_rotary_factor@rope_by_type/10000/new n_routed_experts=expert_count "    \
                 "num_experts_per_tok=expert_used_count" EXPERT_WIDTH                              \
                 " routed_scaling_factor:1.0" NORMED EXPERT_GROUPS

#define LATENT                                                                                     \
    COMMON_SIZES                                                                                   \
    " intermediate_size=feed_forward_length q_lora_rank@rows/blk.%.attn_q_a.weight/null "          \
    "kv_lora_rank=attention.kv_lora_rank widths@latent_widths rope@rope/10" RMS_NORM SILU
#define INDEXER                                                                                    \
    LATENT ROUTED " index_n_heads=attention.indexer.head_count "                                   \
                  "index_head_dim=attention.indexer.key_length "                                   \
                  "index_topk=attention.indexer.top_k" MLP_KINDS BY_SIGMOID
#define KIMI                                                                                       \
    COMMON_SIZES                                                                                   \
    " intermediate_size=feed_forward_length? q_lora_rank@rows/blk.%.attn_q_a.weight/null "         \
    "kv_lora_rank=attention.kv_lora_rank widths@latent_widths "                                    \
    "layer_types@kinds/blk.%.ssm_a/linear_attention/full_attention" MLP_KINDS                      \
    " linear_head_dim=kda.head_dim linear_num_heads@rows/blk.%.ssm_beta.weight "                   \
    "linear_conv_kernel_dim=ssm.conv_kernel num_experts=expert_count "                             \
    "num_experts_per_token=expert_used_count" SHARED_COUNT EXPERT_WIDTH EXPERT_SCALE               \
    " moe_renormalize:true num_expert_group=expert_group_count:1 "                                 \
    "topk_group=expert_group_used_count:1"

#define MAMBA                                                                                      \
    " hidden_size=embedding_length num_hidden_layers@n_layer state_size=ssm.state_size "           \
    "conv_kernel=ssm.conv_kernel expand" SSM_EXPAND                                                \
    " layer_norm_epsilon=attention.layer_norm_rms_epsilon use_conv_bias" CONV_BIAS SILU
#define MAMBA1 MAMBA " intermediate_size=ssm.inner_size time_step_rank=ssm.time_step_rank"
#define HYBRID_MAMBA2                                                                              \
    " mamba_n_heads=ssm.time_step_rank mamba_d_head" SSM_HEAD_DIM                                  \
    " mamba_n_groups=ssm.group_count mamba_d_state=ssm.state_size mamba_d_conv=ssm.conv_kernel "   \
    "mamba_expand" SSM_EXPAND " mamba_conv_bias" CONV_BIAS ATTENTION_BIAS
/* Bamba's class rotates half of a head. */
#define BAMBA                                                                                      \
    HYBRID_SIZES RMS_NORM SILU HYBRID_MAMBA2                                                       \
        " attn_layer_indices@layers_with/blk.%.attn_q.weight" ROPE                                 \
        " partial_rotary_factor:0.5" MLP_BIAS
#define GRANITE_HYBRID                                                                             \
    HYBRID_SIZES RMS_NORM SILU HYBRID_MAMBA2 GRANITE_SCALES LOGITS                                 \
        " num_local_experts=expert_count:0 num_experts_per_tok=expert_used_count:0 "               \
        "layer_types@kinds/blk.%.attn_q.weight/attention/mamba "                                   \
        "position_embedding_type@granite_rotation" ROPE
#define JAMBA                                                                                      \
    HYBRID_SIZES RMS_NORM SILU " mamba_d_state=ssm.state_size mamba_d_conv=ssm.conv_kernel "       \
                               "mamba_expand" SSM_EXPAND                                           \
                               " mamba_dt_rank=ssm.time_step_rank mamba_conv_bias" CONV_BIAS       \
                               " num_experts=expert_count:1 "                                      \
                               "num_experts_per_tok=expert_used_count:1 layers@jamba_layers"
/* The multipliers are in the weights. */
#define FALCON_H1                                                                                  \
    HYBRID_SIZES HEAD_DIM RMS_NORM SILU HYBRID_MAMBA2                                              \
        " mamba_d_ssm=ssm.inner_size mamba_rms_norm@has/blk.%.ssm_norm" MLP_BIAS ROPE              \
        " embedding_multiplier:1.0 lm_head_multiplier:1.0 key_multiplier:1.0 "                     \
        "attention_in_multiplier:1.0 attention_out_multiplier:1.0 ssm_in_multiplier:1.0 "          \
        "ssm_out_multiplier:1.0 ssm_multipliers:[1.0,1.0,1.0,1.0,1.0] mlp_multipliers:[1.0,1.0]"
#define NEMOTRON_H                                                                                 \
    " hidden_size=embedding_length intermediate_size@rows/blk.%.ffn_up.weight "                    \
    "num_hidden_layers@n_layer num_attention_heads@largest/attention.head_count "                  \
    "num_key_value_heads@hybrid_n_head_kv max_position_embeddings=context_length "                 \
    "layers_block_type@kinds/blk.%.attn_q.weight/attention/blk.%.ssm_in.weight/mamba/"             \
    "blk.%.ffn_gate_inp.weight/moe/mlp" HEAD_DIM                                                   \
    " mamba_num_heads=ssm.time_step_rank mamba_head_dim" SSM_HEAD_DIM                              \
    " n_groups=ssm.group_count ssm_state_size=ssm.state_size conv_kernel=ssm.conv_kernel "         \
    "layer_norm_epsilon=attention.layer_norm_rms_epsilon use_conv_bias" CONV_BIAS                  \
    " mlp_hidden_act:'relu2'" NO_NEXTN " mtp_layers_block_type:[]"
#define NEMOTRON_MOE                                                                               \
    " n_routed_experts=expert_count num_experts_per_tok=expert_used_count "                        \
    "n_shared_experts=expert_shared_count:1" EXPERT_WIDTH                                          \
    " moe_shared_expert_intermediate_size=expert_shared_feed_forward_length" EXPERT_SCALE          \
        NORMED_IF EXPERT_GROUPS
