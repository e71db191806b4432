#include "tests/fuzz/runner_seeds.h"

#include <stddef.h>

/* Seeds for models with unusual layers. Sizes as in runner_seeds.c. */

#define EPSILONS(name)                                                                             \
    ",\"" name ".attention.layer_norm_rms_epsilon\":1e-6,\"" name                                  \
    ".attention.layer_norm_epsilon\":1e-5"

/* Tensors that most of these models have: embedding, output, attention, gated feed-forward. */
#define ENDS                                                                                       \
    "token_embd.weight s 0 16 8\n"                                                                 \
    "output_norm.weight s 0 16\n"
#define ATTENTION                                                                                  \
    "blk.0.attn_norm.weight s 0 16\n"                                                              \
    "blk.0.attn_q.weight s 0 16 16\n"                                                              \
    "blk.0.attn_k.weight s 0 16 16\n"                                                              \
    "blk.0.attn_v.weight s 0 16 16\n"                                                              \
    "blk.0.attn_output.weight s 0 16 16\n"
#define NETWORK                                                                                    \
    "blk.0.ffn_norm.weight s 0 16\n"                                                               \
    "blk.0.ffn_gate.weight s 0 16 24\n"                                                            \
    "blk.0.ffn_up.weight s 0 16 24\n"                                                              \
    "blk.0.ffn_down.weight s 0 24 16\n"

const struct runner_seed runner_more_seeds[] = {
    {"shared-kv",
     "{\"general.architecture\":\"gemma4\"" EPSILONS(
         "gemma4") ",\"gemma4.embedding_length_per_layer_input\":0"
                   ",\"gemma4.block_count\":3,\"gemma4.embedding_length\":16,"
                   "\"gemma4.context_length\":32,\"gemma4.attention.head_count\":2,\"gemma4."
                   "attention.key_"
                   "length\":8,\"gemma4.attention.value_length\":8,\"gemma4.attention.key_length_"
                   "swa\":4,"
                   "\"gemma4.attention.value_length_swa\":4,\"gemma4.rope.dimension_count_swa\":4,"
                   "\"gemma4."
                   "attention.sliding_window\":3,\"gemma4.attention.sliding_window_pattern\":[true,"
                   "false,true],"
                   "\"gemma4.attention.shared_kv_layers\":1,\"gemma4.expert_count\":4,\"gemma4."
                   "expert_used_"
                   "count\":2}\n" ENDS "blk.0.attn_norm.weight s 0 16\n"
                   "blk.0.attn_q.weight s 0 16 8\n"
                   "blk.0.attn_k.weight s 0 16 8\n"
                   "blk.0.attn_v.weight s 0 16 8\n"
                   "blk.0.attn_output.weight s 0 8 16\n" NETWORK "blk.1.attn_norm.weight s 0 16\n"
                   "blk.1.attn_q.weight s 0 16 16\n"
                   "blk.1.attn_k.weight s 0 16 16\n"
                   "blk.1.attn_output.weight s 0 16 16\n"
                   "blk.1.ffn_norm.weight s 0 16\n"
                   "blk.1.ffn_gate.weight s 0 16 24\n"
                   "blk.1.ffn_up.weight s 0 16 24\n"
                   "blk.1.ffn_down.weight s 0 24 16\n"
                   "blk.1.ffn_gate_inp.weight s 0 16 4\n"
                   "blk.1.ffn_gate_exps.weight s 0 16 6 4\n"
                   "blk.1.ffn_up_exps.weight s 0 16 6 4\n"
                   "blk.1.ffn_down_exps.weight s 0 6 16 4\n"
                   "blk.1.ffn_gate_inp.scale s 0 16\n"
                   "blk.1.pre_ffw_norm_2.weight s 0 16\n"
                   "blk.1.post_ffw_norm_1.weight s 0 16\n"
                   "blk.1.post_ffw_norm_2.weight s 0 16\n"
                   "blk.1.layer_output_scale.weight s 0 1\n"
                   "blk.2.attn_norm.weight s 0 16\n"
                   "blk.2.attn_q.weight s 0 16 8\n"
                   "blk.2.attn_output.weight s 0 8 16\n"
                   "blk.2.ffn_norm.weight s 0 16\n"
                   "blk.2.ffn_gate.weight s 0 16 24\n"
                   "blk.2.ffn_up.weight s 0 16 24\n"
                   "blk.2.ffn_down.weight s 0 24 16\n"
                   "rope_freqs.weight s 0 4\n"
                   "blk.0.post_attention_norm.weight s 0 16\n"
                   "blk.0.post_ffw_norm.weight s 0 16\n"
                   "blk.0.attn_q_norm.weight s 0 4\n"
                   "blk.1.post_attention_norm.weight s 0 16\n"
                   "blk.1.post_ffw_norm.weight s 0 16\n"
                   "blk.1.attn_q_norm.weight s 0 8\n"
                   "blk.2.post_attention_norm.weight s 0 16\n"
                   "blk.2.post_ffw_norm.weight s 0 16\n"
                   "blk.2.attn_q_norm.weight s 0 4\n"
                   "blk.0.attn_k_norm.weight s 0 4\nblk.1.attn_k_norm.weight s 0 8\n"},
    {"per-layer", "{\"general.architecture\":\"gemma4\"" EPSILONS(
                      "gemma4") ",\"gemma4.attention.sliding_window_pattern\":[true],\"gemma4."
                                "attention.key_length_swa\":8,\"gemma4.attention.value_length_"
                                "swa\":8,\"gemma4.embedding_length_per_layer_input\":6"
                                ",\"gemma4.block_count\":1,\"gemma4.embedding_length\":16,"
                                "\"gemma4.context_length\":32,\"gemma4.attention.head_count\":2,"
                                "\"gemma4.attention.key_"
                                "length\":8,\"gemma4.attention.value_length\":8,\"gemma4.attention."
                                "sliding_window\":3}"
                                "\n" ENDS ATTENTION NETWORK "per_layer_token_embd.weight s 0 6 8\n"
                                "per_layer_model_proj.weight s 0 16 6\n"
                                "per_layer_proj_norm.weight s 0 6\n"
                                "blk.0.inp_gate.weight s 0 16 6\n"
                                "blk.0.proj.weight s 0 6 16\n"
                                "blk.0.post_norm.weight s 0 16\n"
                                "rope_freqs.weight s 0 4\n"
                                "blk.0.post_attention_norm.weight s 0 16\n"
                                "blk.0.post_ffw_norm.weight s 0 16\n"
                                "blk.0.attn_q_norm.weight s 0 8\n"
                                "blk.0.attn_k_norm.weight s 0 8\n"},
    {"streams",
     "{\"general.architecture\":\"gemma3n\"" EPSILONS(
         "gemma3n") ",\"gemma3n.block_count\":1,\"gemma3n."
                    "embedding_length\":16,\"gemma3n.context_length\":32,\"gemma3n.attention.head_"
                    "count\":2,\"gemma3n.attention.sliding_window\":3}\n" ENDS ATTENTION NETWORK
                    "altup_proj.weight s 0 16 16 2\n"
                    "altup_unembd_proj.weight s 0 16 16 2\n"
                    "blk.0.altup_router_norm.weight s 0 16\n"
                    "blk.0.altup_router.weight s 0 16 3\n"
                    "blk.0.altup_predict_coef.weight s 0 3 9\n"
                    "blk.0.altup_correct_coef.weight s 0 3 3\n"
                    "blk.0.altup_correct_scale.weight s 0 16\n"
                    "blk.0.laurel_l.weight s 0 16 5\n"
                    "blk.0.laurel_r.weight s 0 5 16\n"
                    "blk.0.laurel_post_norm.weight s 0 16\n"
                    "per_layer_token_embd.weight s 0 6 8\n"
                    "per_layer_model_proj.weight s 0 16 6\n"
                    "per_layer_proj_norm.weight s 0 6\n"
                    "blk.0.inp_gate.weight s 0 16 6\n"
                    "blk.0.proj.weight s 0 6 16\n"
                    "blk.0.post_attention_norm.weight s 0 16\n"
                    "blk.0.post_ffw_norm.weight s 0 16\n"
                    "blk.0.post_norm.weight s 0 16\n"
                    "blk.0.attn_q_norm.weight s 0 8\n"
                    "blk.0.attn_k_norm.weight s 0 8\n"},
    {"sparse",
     "{\"general.architecture\":\"glm-dsa\"" EPSILONS(
         "glm-dsa") ",\"glm-dsa.expert_count\":4,\"glm-dsa.expert_used_count\":2,\"glm-dsa.leading_"
                    "dense_block_count\":2"
                    ",\"glm-dsa.block_count\":2,\"glm-dsa.embedding_length\":"
                    "16,\"glm-dsa.context_length\":32,\"glm-dsa.attention.head_count\":2,\"glm-dsa."
                    "attention.kv_"
                    "lora_rank\":6,\"glm-dsa.attention.key_length_mla\":10,\"glm-dsa.attention."
                    "value_length_mla\":"
                    "4,\"glm-dsa.rope.dimension_count\":4,\"glm-dsa.attention.indexer.head_count\":"
                    "3,\"glm-dsa."
                    "attention.indexer.key_length\":6,\"glm-dsa.attention.indexer.top_k\":2,\"glm-"
                    "dsa.attention."
                    "indexer.types\":[true,false]}\n" ENDS "blk.0.attn_norm.weight s 0 16\n"
                    "blk.0.attn_q_a.weight s 0 16 5\n"
                    "blk.0.attn_q_a_norm.weight s 0 5\n"
                    "blk.0.attn_q_b.weight s 0 5 20\n"
                    "blk.0.attn_kv_a_mqa.weight s 0 16 10\n"
                    "blk.0.attn_kv_a_norm.weight s 0 6\n"
                    "blk.0.attn_k_b.weight s 0 6 6 2\n"
                    "blk.0.attn_v_b.weight s 0 6 4 2\n"
                    "blk.0.attn_output.weight s 0 8 16\n"
                    "blk.0.indexer.attn_q_b.weight s 0 5 18\n"
                    "blk.0.indexer.attn_k.weight s 0 16 6\n"
                    "blk.0.indexer.proj.weight s 0 16 3\n"
                    "blk.0.indexer.k_norm.weight s 0 6\n"
                    "blk.0.indexer.k_norm.bias s 0 6\n" NETWORK "blk.1.attn_norm.weight s 0 16\n"
                    "blk.1.attn_q_a.weight s 0 16 5\n"
                    "blk.1.attn_q_a_norm.weight s 0 5\n"
                    "blk.1.attn_q_b.weight s 0 5 20\n"
                    "blk.1.attn_kv_a_mqa.weight s 0 16 10\n"
                    "blk.1.attn_kv_a_norm.weight s 0 6\n"
                    "blk.1.attn_k_b.weight s 0 6 6 2\n"
                    "blk.1.attn_v_b.weight s 0 6 4 2\n"
                    "blk.1.attn_output.weight s 0 8 16\n"
                    "blk.1.ffn_norm.weight s 0 16\n"
                    "blk.1.ffn_gate.weight s 0 16 24\n"
                    "blk.1.ffn_up.weight s 0 16 24\n"
                    "blk.1.ffn_down.weight s 0 24 16\n"},
    {"sparse-blocks",
     "{\"general.architecture\":\"minimax-m3\"" EPSILONS(
         "minimax-m3") ",\"minimax-m3.expert_count\":4,\"minimax-m3.expert_used_count\":2,"
                       "\"minimax-m3.rope.dimension_count\":4,\"minimax-m3.expert_gating_func\":2,"
                       "\"minimax-m3.leading_dense_block_count\":1"
                       ",\"minimax-m3.block_count\":1,\"minimax-m3.embedding_"
                       "length\":16,\"minimax-m3.context_length\":32,\"minimax-m3."
                       "attention.head_count\":2,\"minimax-"
                       "m3.attention.indexer.head_count\":2,\"minimax-m3."
                       "attention.indexer.key_length\":8,\"minimax-"
                       "m3.attention.indexer.top_k\":1,\"minimax-m3.attention."
                       "indexer.block_size\":2,\"minimax-m3."
                       "attention.indexer.local_blocks\":1}\n" ENDS ATTENTION
                       "blk.0.indexer.q_proj.weight s 0 16 16\n"
                       "blk.0.indexer.k_proj.weight s 0 16 8\n"
                       "blk.0.indexer.q_norm.weight s 0 8\n"
                       "blk.0.indexer.k_norm.weight s 0 8\n" NETWORK "output.weight s 0 16 8\n"
                       "blk.0.attn_q_norm.weight s 0 8\nblk.0.attn_k_norm.weight s 0 8\n"},
    {"chunks",
     "{\"general.architecture\":\"grovemoe\"" EPSILONS(
         "grovemoe") ",\"grovemoe.block_count\":1,\"grovemoe."
                     "embedding_length\":16,\"grovemoe.context_length\":32,\"grovemoe.attention."
                     "head_"
                     "count\":2,\"grovemoe.experts_per_group\":2,\"grovemoe.expert_group_scale\":0."
                     "05,"
                     "\"grovemoe.expert_count\":4,\"grovemoe.expert_used_count\":2}\n" ENDS
                         ATTENTION "blk.0.ffn_norm.weight s 0 16\n"
                     "blk.0.ffn_gate_inp.weight s 0 16 4\n"
                     "blk.0.ffn_gate_exps.weight s 0 16 6 4\n"
                     "blk.0.ffn_up_exps.weight s 0 16 6 4\n"
                     "blk.0.ffn_down_exps.weight s 0 6 16 4\n"
                     "blk.0.ffn_gate_chexps.weight s 0 16 5 2\n"
                     "blk.0.ffn_up_chexps.weight s 0 16 5 2\n"
                     "blk.0.ffn_down_chexps.weight s 0 5 16 2\n"
                     "blk.0.attn_q_norm.weight s 0 8\n"
                     "blk.0.attn_k_norm.weight s 0 8\n"},
    {"experts-lead",
     "{\"general.architecture\":\"arctic\"" EPSILONS(
         "arctic") ",\"arctic.block_count\":1,\"arctic."
                   "embedding_length\":16,\"arctic.context_length\":32,\"arctic.attention.head_"
                   "count\":2,\"arctic.expert_count\":4,\"arctic.expert_used_count\":2}\n" ENDS
                       ATTENTION NETWORK "blk.0.ffn_gate_inp.weight s 0 16 4\n"
                   "blk.0.ffn_gate_exps.weight s 0 16 6 4\n"
                   "blk.0.ffn_up_exps.weight s 0 16 6 4\n"
                   "blk.0.ffn_down_exps.weight s 0 6 16 4\n"
                   "blk.0.ffn_norm_exps.weight s 0 16\n"},
    {"router-leads",
     "{\"general.architecture\":\"smallthinker\"" EPSILONS(
         "smallthinker") ",\"smallthinker.expert_gating_func\":2"
                         ",\"smallthinker.block_count\":1,\"smallthinker."
                         "embedding_length\":16,\"smallthinker.context_length\":32,\"smallthinker."
                         "attention.head_"
                         "count\":2,\"smallthinker.expert_count\":4,\"smallthinker.expert_used_"
                         "count\":2}\n" ENDS ATTENTION "blk.0.ffn_norm.weight s 0 16\n"
                         "blk.0.ffn_gate_inp.weight s 0 16 4\n"
                         "blk.0.ffn_gate_exps.weight s 0 16 6 4\n"
                         "blk.0.ffn_up_exps.weight s 0 16 6 4\n"
                         "blk.0.ffn_down_exps.weight s 0 6 16 4\n"},
    {"bare-norms", "{\"general.architecture\":\"talkie\"" EPSILONS(
                       "talkie") ",\"talkie.block_count\":1,\"talkie.embedding_length\":16,"
                                 "\"talkie.context_length\":32,\"talkie.attention.head_count\":2,"
                                 "\"talkie.logit_scale\":0.5}\n"
                                 "token_embd.weight s 0 16 8\n"
                                 "blk.0.attn_q.weight s 0 16 16\n"
                                 "blk.0.attn_k.weight s 0 16 16\n"
                                 "blk.0.attn_v.weight s 0 16 16\n"
                                 "blk.0.attn_output.weight s 0 16 16\n"
                                 "blk.0.attn_q_norm.weight s 0 1 2\n"
                                 "blk.0.ffn_gate.weight s 0 16 24\n"
                                 "blk.0.ffn_up.weight s 0 16 24\n"
                                 "blk.0.ffn_down.weight s 0 24 16\n"
                                 "blk.0.layer_output_scale.weight s 0 1\n"
                                 "output.weight s 0 16 8\n"},
    {"gates", "{\"general.architecture\":\"laguna\"" EPSILONS(
                  "laguna") ",\"laguna.expert_count\":4,\"laguna.expert_used_count\":2"
                            ",\"laguna.block_count\":1,\"laguna.embedding_length\":16,"
                            "\"laguna.context_length\":32,\"laguna.attention.head_count\":2,"
                            "\"laguna.attention.sliding_"
                            "window\":3,\"laguna.rope.dimension_count\":4,\"laguna.rope.dimension_"
                            "count_swa\":8}"
                            "\n" ENDS ATTENTION "blk.0.attn_gate.weight s 0 16 2\n" NETWORK
                            "blk.0.attn_q_norm.weight s 0 8\n"
                            "blk.0.attn_k_norm.weight s 0 8\n"},
    {"clamps",
     "{\"general.architecture\":\"step35\"" EPSILONS(
         "step35") ",\"step35.attention.sliding_window\":3,\"step35.attention.sliding_window_"
                   "pattern\":[true]"
                   ",\"step35.block_count\":1,\"step35.embedding_"
                   "length\":16,\"step35.context_length\":32,\"step35.attention.head_count\":2,"
                   "\"step35.swiglu_clamp_exp\":[0.5],\"step35.swiglu_clamp_shexp\":[0.5],\"step35."
                   "expert_count\":4,\"step35.expert_used_count\":2}\n" ENDS ATTENTION
                   "blk.0.ffn_norm.weight s 0 16\n"
                   "blk.0.ffn_gate_inp.weight s 0 16 4\n"
                   "blk.0.ffn_gate_exps.weight s 0 16 6 4\n"
                   "blk.0.ffn_up_exps.weight s 0 16 6 4\n"
                   "blk.0.ffn_down_exps.weight s 0 6 16 4\n"
                   "blk.0.ffn_gate_shexp.weight s 0 16 5\n"
                   "blk.0.ffn_up_shexp.weight s 0 16 5\n"
                   "blk.0.ffn_down_shexp.weight s 0 5 16\n"
                   "blk.0.attn_gate.weight s 0 16 16\n"
                   "output.weight s 0 16 8\n"},
    {"loops", "{\"general.architecture\":\"nanbeige\"" EPSILONS(
                  "nanbeige") ",\"nanbeige.block_count\":1,\"nanbeige."
                              "embedding_length\":16,\"nanbeige.context_length\":32,\"nanbeige."
                              "attention.head_"
                              "count\":2,\"nanbeige.num_loops\":2}\n" ENDS ATTENTION NETWORK},
    {"linear",
     "{\"general.architecture\":\"deci\"" EPSILONS(
         "deci") ",\"deci.block_count\":1,\"deci.embedding_"
                 "length\":16,\"deci.context_length\":32,\"deci.attention.head_count\":2,\"deci."
                 "attention.head_count_kv\":[0]}\n" ENDS "blk.0.attn_norm.weight s 0 16\n"
                 "blk.0.attn_output.weight s 0 16 16\n" NETWORK},
    {"temperature", "{\"general.architecture\":\"mistral3\"" EPSILONS(
                        "mistral3") ",\"mistral3.block_count\":1,\"mistral3.embedding_"
                                    "length\":16,\"mistral3.context_length\":32,\"mistral3."
                                    "attention.head_count\":2,\"mistral3."
                                    "attention.temperature_scale\":0.1,\"mistral3.rope.scaling."
                                    "original_context_length\":2,"
                                    "\"mistral3.rope.scaling.type\":\"yarn\",\"mistral3.rope."
                                    "scaling.factor\":4,\"mistral3.rope."
                                    "scaling.yarn_log_multiplier\":1.0}\n" ENDS ATTENTION NETWORK},
    {"swin", "{\"general.architecture\":\"chameleon\"" EPSILONS(
                 "chameleon") ",\"chameleon.block_count\":1,\"chameleon."
                              "embedding_length\":16,\"chameleon.context_length\":32,\"chameleon."
                              "attention.head_"
                              "count\":2,\"chameleon.swin_norm\":true}\n" ENDS ATTENTION
                              "blk.0.attn_q_norm.weight s 0 8 2\n"
                              "blk.0.attn_k_norm.weight s 0 8 2\n" NETWORK},
    {NULL, NULL},
};
