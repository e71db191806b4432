#include "tests/fuzz/runner_seeds.h"

#include <stddef.h>

/* Default sizes: embedding 16, vocabulary 8, two heads of 8. */

/* Norms have one of these, depending on the architecture. */
#define EPSILONS(name)                                                                             \
    ",\"" name ".attention.layer_norm_rms_epsilon\":1e-6,\"" name                                  \
    ".attention.layer_norm_epsilon\":1e-5"

#define STATE(name)                                                                                \
    "{\"general.architecture\":\"" name "\",\"" name ".block_count\":1,\"" name                    \
    ".embedding_length\":16" EPSILONS(name)

#define KEYS(name) STATE(name) ",\"" name ".context_length\":32,\"" name ".attention.head_count\":2"

#define NORMS(i)                                                                                   \
    "output_norm.bias s 0 16\nblk." i ".attn_norm.weight s 0 16\nblk." i                           \
    ".attn_norm.bias s 0 16\nblk." i ".attn_norm_2.weight s 0 16\nblk." i                          \
    ".attn_norm_2.bias s 0 16\n"

#define TIME_MIX(i)                                                                                \
    "blk." i ".time_mix_key.weight s 0 16 16\nblk." i ".time_mix_value.weight s 0 16 16\nblk." i   \
    ".time_mix_receptance.weight s 0 16 16\nblk." i ".time_mix_output.weight s 0 16 16\n"

#define TIME_MIX_NARROW(i)                                                                         \
    "blk." i ".time_mix_key.weight s 0 16 8\nblk." i ".time_mix_value.weight s 0 16 8\nblk." i     \
    ".time_mix_receptance.weight s 0 16 16\nblk." i ".time_mix_output.weight s 0 16 16\n"

#define CHANNEL_MIX(i)                                                                             \
    "blk." i ".channel_mix_key.weight s 0 16 20\nblk." i ".channel_mix_value.weight s 0 20 16\n"   \
    "blk." i ".channel_mix_lerp_k.weight s 0 16\n"

#define END "}\n"

#define ENDS "token_embd.weight s 0 16 8\noutput_norm.weight s 0 16\n"

#define QKV(i)                                                                                     \
    "blk." i ".attn_norm.weight s 0 16\nblk." i ".attn_q.weight s 0 16 16\nblk." i                 \
    ".attn_k.weight s 0 16 16\nblk." i ".attn_v.weight s 0 16 16\nblk." i                          \
    ".attn_output.weight s 0 16 16\n"

#define FUSED(i)                                                                                   \
    "blk." i ".attn_norm.weight s 0 16\nblk." i ".attn_norm.bias s 0 16\nblk." i                   \
    ".attn_qkv.weight s 0 16 48\nblk." i ".attn_output.weight s 0 16 16\n"

#define GATED(i)                                                                                   \
    "blk." i ".ffn_norm.weight s 0 16\nblk." i ".ffn_gate.weight s 0 16 24\nblk." i                \
    ".ffn_up.weight s 0 16 24\nblk." i ".ffn_down.weight s 0 24 16\n"

#define PLAIN(i) "blk." i ".ffn_up.weight s 0 16 24\nblk." i ".ffn_down.weight s 0 24 16\n"

#define EXPERTS(i) "blk." i ".ffn_norm.weight s 0 16\n" MIXTURE(i)

#define MIXTURE(i)                                                                                 \
    "blk." i ".ffn_gate_inp.weight s 0 16 4\nblk." i ".ffn_gate_exps.weight s 0 16 6 4\nblk." i    \
    ".ffn_up_exps.weight s 0 16 6 4\nblk." i ".ffn_down_exps.weight s 0 6 16 4\n"

#define SHARED(i)                                                                                  \
    "blk." i ".ffn_gate_shexp.weight s 0 16 5\nblk." i ".ffn_up_shexp.weight s 0 16 5\nblk." i     \
    ".ffn_down_shexp.weight s 0 5 16\n"

#define VOCABULARY(kind)                                                                           \
    "{\"general.architecture\":\"none\",\"tokenizer.ggml.model\":\"" kind                          \
    "\",\"tokenizer.ggml.tokens\":"

const struct runner_seed runner_seeds[] = {
    {"llama", KEYS("llama") ",\"llama.rope.freq_base\":10000" END ENDS QKV("0") GATED("0")},
    {"llama-grouped",
     KEYS("llama") ",\"llama.attention.head_count_kv\":[1],"
                   "\"llama.rope.dimension_count\":4" END ENDS "blk.0.attn_norm.weight s 0 16\n"
                   "blk.0.attn_q.weight s 0 16 16\nblk.0.attn_k.weight s 1 16 8\n"
                   "blk.0.attn_v.weight s 30 16 8\n"
                   "blk.0.attn_output.weight s 0 16 16\n" GATED("0")},
    {"llama-quants",
     "{\"general.architecture\":\"llama\"" EPSILONS(
         "llama") ",\"llama.block_count\":1,"
                  "\"llama.embedding_length\":32,\"llama.attention.head_count\":4}\n"
                  "token_embd.weight s 8 32 8\noutput_norm.weight s 1 32\n"
                  "output.weight s 2 32 8\nblk.0.attn_norm.weight s 30 32\n"
                  "blk.0.attn_q.weight s 3 32 32\nblk.0.attn_k.weight s 6 32 32\n"
                  "blk.0.attn_v.weight s 7 32 32\nblk.0.attn_output.weight s 20 32 32\n"
                  "blk.0.ffn_norm.weight s 24 32\nblk.0.ffn_gate.weight s 39 32 64\n"
                  "blk.0.ffn_up.weight s 8 32 64\nblk.0.ffn_down.weight s 42 64 32\n"
                  "blk.0.attn_q.scale s 0 1\n"},
    {"llama-info", KEYS("llama") END
     "token_embd.weight s512 {\"ggml_type\": 0, \"type\": \"F32\", \"ne\": [16, 8]}\n"
     "output_norm.weight s64 {\"ggml_type\": 0, \"era\": 2, \"ne\": [16, 1, 1, 1]}\n" QKV("0")
         GATED("0")},
    {"llama-old",
     "{\"general.architecture\":\"llama\"" EPSILONS(
         "llama") ",\"llama.block_count\":1,"
                  "\"llama.embedding_length\":32,\"llama.attention.head_count\":4,"
                  "\"llama.tensor_data_layout\":\"reference\",\"llama.rope.scale_linear\":2.0}\n"
                  "output_norm.weight s 0 32\n"
                  "token_embd.weight s160 {\"ggml_type\":2,\"era\":0,\"ne\":[32,8]}\n"
                  "blk.0.attn_norm.weight s 0 32\nblk.0.attn_q.weight s 0 32 32\n"
                  "blk.0.attn_k.weight s 0 32 32\nblk.0.attn_v.weight s 0 32 32\n"
                  "blk.0.attn_output.weight s 0 32 32\nblk.0.ffn_norm.weight s 0 32\n"
                  "blk.0.ffn_gate.weight s 0 32 4\nblk.0.ffn_up.weight s 0 32 4\n"
                  "blk.0.ffn_down.weight s 0 4 32\n"},
    {"moe", KEYS("llama") ",\"llama.expert_count\":4,\"llama.expert_used_count\":2" END ENDS QKV(
                "0") EXPERTS("0")},
    {"moe-odd",
     KEYS("hy_v3") ",\"hy_v3.expert_count\":4,\"hy_v3.expert_used_count\":3" END ENDS QKV("0")
         EXPERTS("0") "blk.0.exp_probs_b.bias r 0 4\n"
                      "blk.0.ffn_gate_inp.weight r 0 16 4\n"
                      "blk.0.attn_q_norm.weight s 0 8\nblk.0.attn_k_norm.weight s 0 8\n"},
    {"moe-shared", KEYS("qwen2moe") ",\"qwen2moe.expert_count\":4,"
                                    "\"qwen2moe.expert_used_count\":2" END ENDS QKV("0") EXPERTS(
                                        "0") SHARED("0") "blk.0.ffn_gate_inp_shexp.weight s 0 16\n"
                                                         "blk.0.attn_q.bias s 0 16\n"
                                                         "blk.0.attn_k.bias s 0 16\n"
                                                         "blk.0.attn_v.bias s 0 16\n"
                                                         "output.weight s 0 16 8\n"},
    {"latent", KEYS("deepseek2") ",\"deepseek2.expert_count\":4,\"deepseek2.expert_used_count\":2,"
                                 "\"deepseek2.leading_dense_block_count\":1"
                                 ",\"deepseek2.attention.kv_lora_rank\":6,"
                                 "\"deepseek2.attention.key_length\":10,"
                                 "\"deepseek2.attention.value_length\":4,"
                                 "\"deepseek2.rope.dimension_count\":4" END ENDS
                                 "blk.0.attn_norm.weight s 0 16\n"
                                 "blk.0.attn_q.weight s 0 16 20\n"
                                 "blk.0.attn_kv_a_mqa.weight s 0 16 10\n"
                                 "blk.0.attn_kv_a_norm.weight s 0 6\n"
                                 "blk.0.attn_kv_b.weight s 0 6 20\n"
                                 "blk.0.attn_output.weight s 0 8 16\n" GATED("0")},
    {"latent-absorbed",
     KEYS("deepseek2") ",\"deepseek2.attention.kv_lora_rank\":6,"
                       "\"deepseek2.attention.key_length_mla\":10,"
                       "\"deepseek2.attention.value_length_mla\":4,"
                       "\"deepseek2.rope.dimension_count\":4,\"deepseek2.expert_count\":4,"
                       "\"deepseek2.expert_used_count\":2,\"deepseek2.expert_group_count\":2,"
                       "\"deepseek2.expert_group_used_count\":1,"
                       "\"deepseek2.expert_gating_func\":2,\"deepseek2.expert_weights_norm\":true,"
                       "\"deepseek2.expert_weights_scale\":2.5,"
                       "\"deepseek2.rope.scaling.type\":\"yarn\","
                       "\"deepseek2.rope.scaling.factor\":4,"
                       "\"deepseek2.rope.scaling.yarn_log_multiplier\":0.1" END ENDS
                       "blk.0.attn_norm.weight s 0 16\nblk.0.attn_q_a.weight s 0 16 5\n"
                       "blk.0.attn_q_a_norm.weight s 0 5\nblk.0.attn_q_b.weight s 0 5 20\n"
                       "blk.0.attn_kv_a_mqa.weight s 0 16 10\n"
                       "blk.0.attn_kv_a_norm.weight s 0 6\nblk.0.attn_k_b.weight s 0 6 6 2\n"
                       "blk.0.attn_v_b.weight s 0 6 4 2\nblk.0.attn_output.weight s 0 8 16\n"
                       "blk.0.exp_probs_b.bias s 0 4\n" EXPERTS("0") SHARED("0")},
    {"parallel", KEYS("phi2") ",\"phi2.rope.dimension_count\":4" END ENDS FUSED("0")
                     PLAIN("0") "output_norm.bias s 0 16\noutput.weight s 0 16 8\n"
                                "output.bias s 0 8\nblk.0.attn_qkv.bias s 0 48\n"
                                "blk.0.attn_output.bias s 0 16\n"
                                "blk.0.ffn_up.bias s 0 24\n"
                                "blk.0.ffn_down.bias s 0 16\n"},
    {"parallel-norms",
     KEYS("falcon") ",\"falcon.attention.head_count_kv\":1" END ENDS
                    "blk.0.attn_norm.weight s 0 16\nblk.0.attn_norm_2.weight s 0 16\n"
                    "blk.0.attn_qkv.weight s 0 16 32\nblk.0.attn_output.weight s 0 16 16\n" PLAIN(
                        "0") "output_norm.bias s 0 16\n"
                             "blk.0.attn_norm.bias s 0 16\n"
                             "blk.0.attn_norm_2.bias s 0 16\n"},
    {"alibi",
     KEYS("mpt") ",\"mpt.attention.max_alibi_bias\":8.0,"
                 "\"mpt.attention.clamp_kqv\":1.5,\"mpt.attention.head_count_kv\":2" END ENDS
                     FUSED("0") "blk.0.ffn_norm.weight s 0 16\n" PLAIN(
                         "0") "blk.0.ffn_norm.bias s 0 16\n"},
    {"windowed",
     KEYS("gemma3") ",\"gemma3.attention.sliding_window\":3,"
                    "\"gemma3.attention.sliding_window_pattern\":[true],"
                    "\"gemma3.attention.key_length\":8,"
                    "\"gemma3.attention.value_length\":8,"
                    "\"gemma3.final_logit_softcapping\":30.0,"
                    "\"gemma3.attn_logit_softcapping\":50.0" END ENDS QKV("0") GATED(
                        "0") "blk.0.attn_q_norm.weight s 0 8\nblk.0.attn_k_norm.weight s 0 8\n"
                             "blk.0.post_attention_norm.weight s 0 16\n"
                             "blk.0.post_ffw_norm.weight s 0 16\n"},
    {"sinks", KEYS("gpt-oss") ",\"gpt-oss.attention.sliding_window\":3,"
                              "\"gpt-oss.expert_count\":4,\"gpt-oss.expert_used_count\":2,"
                              "\"gpt-oss.rope.scaling.type\":\"yarn\","
                              "\"gpt-oss.rope.scaling.factor\":32,"
                              "\"gpt-oss.rope.scaling.original_context_length\":4096" END ENDS QKV(
                                  "0") MIXTURE("0") "blk.0.attn_sinks.weight s 0 2\n"
                                                    "blk.0.attn_q.bias s 0 16\n"
                                                    "blk.0.ffn_gate_exps.bias s 0 6 4\n"
                                                    "blk.0.ffn_down_exps.bias s 0 16 4\n"
                                                    "blk.0.post_attention_norm.weight s 0 16\n"
                                                    "blk.0.attn_k.bias s 0 16\n"
                                                    "blk.0.attn_v.bias s 0 16\n"
                                                    "blk.0.attn_output.bias s 0 16\n"
                                                    "blk.0.ffn_gate_inp.bias s 0 4\n"
                                                    "blk.0.ffn_up_exps.bias s 0 6 4\n"
                                                    "output.weight s 0 16 8\n"},
    {"positions", KEYS("gpt2") END ENDS FUSED("0") "blk.0.ffn_norm.weight s 0 16\n" PLAIN(
                      "0") "position_embd.weight s 0 16 9\nblk.0.ffn_up.bias s 0 24\n"
                           "output_norm.bias s 0 16\n"
                           "blk.0.ffn_norm.bias s 0 16\n"
                           "blk.0.attn_qkv.bias s 0 48\n"
                           "blk.0.attn_output.bias s 0 16\n"
                           "blk.0.ffn_down.bias s 0 16\n"},
    {"no-norms", "{\"general.architecture\":\"olmo\"" EPSILONS(
                     "olmo") ",\"olmo.block_count\":1,"
                             "\"olmo.embedding_length\":16,\"olmo.attention.head_count\":2}\n"
                             "token_embd.weight s 0 16 8\nblk.0.attn_q.weight s 0 16 16\n"
                             "blk.0.attn_k.weight s 0 16 16\nblk.0.attn_v.weight s 0 16 16\n"
                             "blk.0.attn_output.weight s 0 16 16\n" PLAIN(
                                 "0") "blk.0.ffn_gate.weight s 0 16 24\n"},
    {"factors", KEYS("phi3") ",\"phi3.rope.scaling.original_context_length\":16,"
                             "\"phi3.rope.scaling.attn_factor\":1.19" END ENDS
                             "blk.0.attn_norm.weight s 0 16\nblk.0.attn_qkv.weight s 0 16 "
                             "48\nblk.0.attn_output.weight s 0 16 16\n"
                             "blk.0.ffn_norm.weight s 0 16\nblk.0.ffn_up.weight s 0 16 48\n"
                             "blk.0.ffn_down.weight s 0 24 16\nrope_factors_long.weight s 0 4\n"
                             "rope_factors_short.weight s 0 4\n"},
    {"scaled", KEYS("granite") ",\"granite.embedding_scale\":12.0,\"granite.residual_scale\":0.22,"
                               "\"granite.logit_scale\":8.0,\"granite.attention.scale\":0.0156,"
                               "\"granite.rope.scaling.type\":\"linear\","
                               "\"granite.rope.scaling.factor\":2" END ENDS QKV("0")
                                   GATED("0") "rope_freqs.weight s 0 4\n"},
    {"xielu", KEYS("apertus") ",\"xielu.alpha_n\":[0.5],\"xielu.alpha_p\":0.8,"
                              "\"xielu.beta\":0.5,\"xielu.eps\":-1e-6" END ENDS QKV("0")
                                  PLAIN("0") "blk.0.ffn_norm.weight s 0 16\n"
                                             "blk.0.attn_q_norm.weight s 0 8\n"
                                             "blk.0.attn_k_norm.weight s 0 8\n"
                                             "output.weight s 0 16 8\n"},
    {"two-layers",
     "{\"general.architecture\":\"deci\"" EPSILONS(
         "deci") ",\"deci.block_count\":2,"
                 "\"deci.embedding_length\":16,\"deci.attention.head_count\":[2,0],"
                 "\"deci.rope.freq_base\":5000.0}\n" ENDS QKV("0") GATED("0") GATED("1")},
    {"windowed-parallel",
     KEYS("cohere2") ",\"cohere2.attention.sliding_window\":2,\"cohere2.logit_scale\":0.25" END ENDS
         QKV("0") PLAIN("0") "blk.0.ffn_gate.weight s 0 16 24\n"},
    {"chunked",
     KEYS("llama4") ",\"llama4.attention.chunk_size\":3,"
                    "\"llama4.expert_count\":4,\"llama4.expert_used_count\":1" END ENDS QKV("0")
                        EXPERTS("0") SHARED("0")},
    {"moe-chunks", KEYS("grovemoe") ",\"grovemoe.expert_count\":4,\"grovemoe.expert_used_count\":3,"
                                    "\"grovemoe.experts_per_group\":2,"
                                    "\"grovemoe.expert_group_scale\":0.05" END ENDS QKV("0")
                                        EXPERTS("0") "blk.0.ffn_gate_chexps.weight s 0 16 6 2\n"
                                                     "blk.0.ffn_up_chexps.weight s 0 16 6 2\n"
                                                     "blk.0.ffn_down_chexps.weight s 0 6 16 2\n"
                                                     "blk.0.attn_q_norm.weight s 0 8\n"
                                                     "blk.0.attn_k_norm.weight s 0 8\n"},
    {"moe-narrow",
     KEYS("nemotron_h_moe") ",\"nemotron_h_moe.expert_count\":4,"
                            "\"nemotron_h_moe.ssm.group_count\":1,"
                            "\"nemotron_h_moe.attention.head_count_kv\":[0],"
                            "\"nemotron_h_moe.expert_used_count\":2" END ENDS
                            "blk.0.attn_norm.weight s 0 16\nblk.0.ffn_gate_inp.weight s 0 16 4\n"
                            "blk.0.exp_probs_b.bias s 0 4\n"
                            "blk.0.ffn_latent_down.weight s 0 16 5\n"
                            "blk.0.ffn_latent_up.weight s 0 5 16\n"
                            "blk.0.ffn_up_exps.weight s 0 5 6 4\n"
                            "blk.0.ffn_down_exps.weight s 0 6 5 4\n"
                            "blk.0.ffn_up_shexp.weight s 0 16 5\n"
                            "blk.0.ffn_down_shexp.weight s 0 5 16\n"},
    {"mamba", STATE("mamba") END ENDS "blk.0.attn_norm.weight s 0 16\n"
                                      "blk.0.ssm_in.weight s 0 16 64\n"
                                      "blk.0.ssm_conv1d.weight s 0 4 32\n"
                                      "blk.0.ssm_conv1d.bias s 0 32\n"
                                      "blk.0.ssm_x.weight s 0 32 10\nblk.0.ssm_dt.weight s 0 2 32\n"
                                      "blk.0.ssm_dt.bias s 0 32\nblk.0.ssm_a s 0 4 32\n"
                                      "blk.0.ssm_d s 0 32\nblk.0.ssm_out.weight s 0 32 16\n"},
    {"mamba2", STATE("mamba2") ",\"mamba2.ssm.group_count\":2" END ENDS
                               "blk.0.attn_norm.weight s 0 16\nblk.0.ssm_in.weight s 0 16 84\n"
                               "blk.0.ssm_conv1d.weight s 0 4 48\nblk.0.ssm_conv1d.bias s 0 48\n"
                               "blk.0.ssm_dt.bias s 0 4\nblk.0.ssm_a s 0 1 4\nblk.0.ssm_d s 0 1 4\n"
                               "blk.0.ssm_norm.weight s 0 16 2\nblk.0.ssm_out.weight s 0 32 16\n"},
    {"hybrid", KEYS("falcon-h1") ",\"falcon-h1.ssm.group_count\":1" END ENDS QKV("0")
                   GATED("0") "blk.0.ssm_in.weight s 0 16 76\nblk.0.ssm_conv1d.weight s 0 4 40\n"
                              "blk.0.ssm_dt.bias s 0 4\nblk.0.ssm_a s 0 1 4\nblk.0.ssm_d s 0 1 4\n"
                              "blk.0.ssm_out.weight s 0 32 16\n"},
    {"short",
     KEYS("lfm2") ",\"lfm2.attention.head_count_kv\":[0]" END ENDS
                  "blk.0.attn_norm.weight s 0 16\nblk.0.shortconv.in_proj.weight s 0 16 48\n"
                  "blk.0.shortconv.conv.weight s 0 3 16\nblk.0.shortconv.out_proj.weight s 0 16 "
                  "16\n" GATED("0")},
    {"delta",
     KEYS("qwen3next") ",\"qwen3next.expert_count\":4,\"qwen3next.expert_used_count\":2,"
                       "\"qwen3next.rope.dimension_count\":4"
                       ",\"qwen3next.ssm.group_count\":2,"
                       "\"qwen3next.attention.head_count_kv\":[0]" END ENDS
                       "blk.0.attn_norm.weight s 0 16\nblk.0.ssm_in.weight s 0 16 80\n"
                       "blk.0.ssm_ba.weight s 0 16 8\nblk.0.ssm_conv1d.weight s 0 4 48\n"
                       "blk.0.ssm_dt.bias s 0 4\nblk.0.ssm_a s 0 4\nblk.0.ssm_norm.weight s 0 8\n"
                       "blk.0.ssm_out.weight s 0 32 16\n" MIXTURE("0")
                           SHARED("0") "blk.0.post_attention_norm.weight s 0 16\n"
                                       "blk.0.ffn_gate_inp_shexp.weight s 0 16\n"},
    {"kimi",
     KEYS("kimi-linear") ",\"kimi-linear.expert_count\":4,\"kimi-linear.expert_used_count\":2,"
                         "\"kimi-linear.rope.dimension_count\":4,\"kimi-linear.attention.kv_lora_"
                         "rank\":6,\"kimi-linear.expert_gating_func\":2,\"kimi-linear.leading_"
                         "dense_block_count\":1"
                         ",\"kimi-linear.attention.head_count_kv\":[0]" END ENDS QKV(
                             "0") "blk.0.ssm_conv1d_q.weight s 0 4 16\nblk.0.ssm_conv1d_k.weight s "
                                  "0 4 16\n"
                                  "blk.0.ssm_conv1d_v.weight s 0 4 16\nblk.0.ssm_f_a.weight s 0 16 "
                                  "3\n"
                                  "blk.0.ssm_f_b.weight s 0 3 16\nblk.0.ssm_g_a.weight s 0 16 3\n"
                                  "blk.0.ssm_g_b.weight s 0 3 16\nblk.0.ssm_beta.weight s 0 16 2\n"
                                  "blk.0.ssm_dt.bias s 0 16\nblk.0.ssm_a s 0 "
                                  "2\nblk.0.ssm_norm.weight s 0 8\n" GATED(
                                      "0") "output.weight s 0 16 8\n"},
    {"rwkv4", STATE("rwkv") END ENDS NORMS("0") TIME_MIX(
                  "0") "blk.0.time_mix_lerp_k.weight s 0 16\nblk.0.time_mix_lerp_v.weight s 0 16\n"
                       "blk.0.time_mix_lerp_r.weight s 0 16\nblk.0.time_mix_decay.weight s 0 16\n"
                       "blk.0.time_mix_first.weight s 0 16\n" CHANNEL_MIX(
                           "0") "blk.0.channel_mix_lerp_r.weight s 0 16\n"
                                "blk.0.channel_mix_receptance.weight s 0 16 16\n"
                                "token_embd_norm.weight s 0 16\n"
                                "token_embd_norm.bias s 0 16\n"
                                "output.weight s 0 16 8\n"},
    {"rwkv6",
     STATE("rwkv6") ",\"rwkv6.wkv.head_size\":4" END ENDS NORMS("0") TIME_MIX(
         "0") "blk.0.time_mix_gate.weight s 0 16 16\nblk.0.time_mix_lerp_x.weight s 0 16\n"
              "blk.0.time_mix_w1.weight s 0 16 15\nblk.0.time_mix_w2.weight s 0 3 16 5\n"
              "blk.0.time_mix_lerp_fused.weight s 0 16 1 1 5\n"
              "blk.0.time_mix_decay_w1.weight s 0 16 2\nblk.0.time_mix_decay_w2.weight s 0 2 16\n"
              "blk.0.time_mix_decay.weight s 0 16\nblk.0.time_mix_first.weight s 0 4 4\n"
              "blk.0.time_mix_ln.weight s 0 16\nblk.0.time_mix_ln.bias s 0 16\n" CHANNEL_MIX(
                  "0") "blk.0.channel_mix_lerp_r.weight s 0 16\n"
                       "blk.0.channel_mix_receptance.weight s 0 16 16\n"
                       "token_embd_norm.weight s 0 16\n"
                       "token_embd_norm.bias s 0 16\n"
                       "output.weight s 0 16 8\n"},
    {"rwkv6-linear",
     STATE("rwkv6qwen2") ",\"rwkv6qwen2.wkv.head_size\":4" END
         ENDS "blk.0.attn_norm.weight s 0 16\n" TIME_MIX_NARROW(
             "0") "blk.0.time_mix_gate.weight s 0 16 16\nblk.0.time_mix_lerp_x.weight s 0 16\n"
                  "blk.0.time_mix_w1.weight s 0 16 15\nblk.0.time_mix_w2.weight s 0 3 16 5\n"
                  "blk.0.time_mix_lerp_fused.weight s 0 16 1 1 5\n"
                  "blk.0.time_mix_decay_w1.weight s 0 16 2\nblk.0.time_mix_decay_w2.weight s 0 2 "
                  "16\n"
                  "blk.0.time_mix_decay.weight s 0 16\n" GATED("0") "output.weight s 0 16 8\n"},
    {"rwkv7",
     STATE("rwkv7") ",\"rwkv7.wkv.head_size\":4" END ENDS NORMS("0") TIME_MIX(
         "0") "blk.0.time_mix_lerp_fused.weight s 0 16 1 1 6\n"
              "blk.0.time_mix_g1.weight s 0 16 3\nblk.0.time_mix_g2.weight s 0 3 16\n"
              "blk.0.time_mix_w0.weight s 0 16\nblk.0.time_mix_w1.weight s 0 16 3\n"
              "blk.0.time_mix_w2.weight s 0 3 16\nblk.0.time_mix_a0.weight s 0 16\n"
              "blk.0.time_mix_a1.weight s 0 16 3\nblk.0.time_mix_a2.weight s 0 3 16\n"
              "blk.0.time_mix_k_k.weight s 0 16\nblk.0.time_mix_k_a.weight s 0 16\n"
              "blk.0.time_mix_r_k.weight s 0 4 4\nblk.0.time_mix_ln.weight s 0 16\n"
              "blk.0.time_mix_ln.bias s 0 16\n" CHANNEL_MIX("0") "token_embd_norm.weight s 0 16\n"
                                                                 "token_embd_norm.bias s 0 16\n"
                                                                 "output.weight s 0 16 8\n"},
    {"sentencepiece",
     VOCABULARY("llama") "[\"<unk>\",\"<s>\",\"</s>\",\"<0x0A>\",\"\\u2581\",\"t\",\"h\","
                         "\"e\",\"th\",\"the\",\"\\u2581the\"],\"tokenizer.ggml.scores\":[0,0,0,0,"
                         "-1,-2,-3,-4,-1.5,-1.2,-1.1],\"tokenizer.ggml.token_type\":[2,3,3,6,1,1,1,"
                         "1,1,1,1],\"tokenizer.ggml.bos_token_id\":1,"
                         "\"tokenizer.ggml.eos_token_id\":2,\"tokenizer.ggml.unknown_token_id\":0,"
                         "\"tokenizer.ggml.add_bos_token\":true,"
                         "\"tokenizer.ggml.add_space_prefix\":true" END "> the the\n"},
    {"byte-pairs",
     VOCABULARY("gpt2") "[\"t\",\"h\",\"e\",\"\\u0120\",\"th\",\"the\",\"\\u0120the\",\"<|eot|>\","
                        "\"\\u010a\",\"1\"],\"tokenizer.ggml.pre\":\"llama-bpe\","
                        "\"tokenizer.ggml.merges\":[\"t h\",\"th e\",\"\\u0120 the\"],"
                        "\"tokenizer.ggml.token_type\":[1,1,1,1,1,1,1,3,1,1],"
                        "\"tokenizer.ggml.eos_token_id\":7" END "> the the<|eot|>\n1 1"},
    {"wordpiece", VOCABULARY("bert") "[\"[UNK]\",\"[CLS]\",\"[SEP]\",\"\\u2581the\",\"re\","
                                     "\"\\u2581t\"],\"tokenizer.ggml.cls_token_id\":1,"
                                     "\"tokenizer.ggml.seperator_token_id\":2,"
                                     "\"tokenizer.ggml.unknown_token_id\":0" END "> the there"},
    {"world",
     VOCABULARY("rwkv") "[\"<s>\",\"\\\\x00\",\"t\",\"the\",\" the\",\"\\\\n\"]" END "> the the\n"},
    {"plamo", VOCABULARY("plamo2") "[\"<|plamo:unk|>\",\"<0x41>\",\"the\",\"there\"],"
                                   "\"tokenizer.ggml.scores\":[0,-1,-2,-3],"
                                   "\"tokenizer.ggml.token_type\":[2,6,1,1]" END "> the there"},
    {"bytes", "{\"general.architecture\":\"rwkv6\",\"rwkv6.vocab_size\":256}\n> the"},
    {NULL, NULL},
};
