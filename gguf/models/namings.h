/*
 * Names of tensors elsewhere: in checkpoints of transformers, and in files from before GGUF that
 * copy them. One table serves both directions. Names follow llama.cpp's
 * gguf-py/gguf/tensor_mapping.py and the classes of transformers.
 */
#pragma once

#include "gguf/models/tensor_names.h"
#include "gguf/models/orders.h"

/* The function from a number elsewhere to the number in GGUF. */
enum gguf_change {
    GGUF_UNCHANGED,
    GGUF_PLUS_ONE,  /* x + 1: norms of Gemma, Nemotron, Qwen3-Next */
    GGUF_MINUS_EXP, /* -exp(x): A_log of Mamba */
};

/*
 * A naming is a text: the prefix of layers elsewhere, then words separated by spaces:
 *
 *   output=lm_head                        the name in GGUF, and the name elsewhere
 *   .attn_q=.self_attn.q_proj             in layers: blk.%.attn_q, and PREFIX.self_attn.q_proj
 *   .attn_q=.self_attn.q_proj:pairs_q     the order of elements changes, see orders.h
 *   .attn_norm=.input_layernorm:plus_one  the numbers change: plus_one or minus_exp
 *   .ffn_up_exps=.mlp.experts.#.up_proj   it is divided along its slowest dimension, by experts
 *   .attn_k_b&.attn_v_b=.kv_b_proj        two tensors of GGUF go into one
 *   .attn_k_b!.attn_kv_b=.kv_b_proj       unless the second one is there, with the same content
 *   rope_freqs                            a configuration or another word has the content
 *   /xielu.beta=.act_fn.beta              a key whose values are a tensor of each layer
 *
 * The first word whose pattern matches applies, in either direction. Suffixes ".weight" and ".bias"
 * that the patterns do not name go from one name to the other.
 */
struct gguf_rename {
    const char *name;  /* pattern, see gguf_tensor_name_matches() */
    const char *other; /* pattern; NULL: the tensor has no place of its own elsewhere */
    enum gguf_order order;
    enum gguf_change change;
    const char *with, *unless; /* patterns of other tensors of GGUF; NULL: none */
    bool is_key;               /* `name` is a key with a number for each layer */
};

/* The words of a naming. */
struct gguf_names {
    struct gguf_rename *list;
    size_t count;
};

/* Read a naming. Returns 0 or -ENOMEM. Free `names` with gguf_names_free() in any case. */
int gguf_names_read(const char *naming, struct gguf_names *names);
void gguf_names_free(struct gguf_names *names);

/* Find a tensor's rename by its name in GGUF. Returns NULL if none matches. */
const struct gguf_rename *gguf_rename_of(const struct gguf_names *names, struct gguf_string name,
                                         struct gguf_name_match *match);

/* Checkpoints, by model_type of config.json. */
extern const char gguf_naming_mixtral[], gguf_naming_llama[], gguf_naming_llama_plain[],
    gguf_naming_olmo[], gguf_naming_olmo3[], gguf_naming_apertus[], gguf_naming_seed_oss[],
    gguf_naming_hunyuan_v1_dense[], gguf_naming_glm[], gguf_naming_glm4[], gguf_naming_phi3[],
    gguf_naming_bitnet[], gguf_naming_nemotron[], gguf_naming_starcoder2[], gguf_naming_stablelm[],
    gguf_naming_qwen2_moe[], gguf_naming_qwen3_moe[], gguf_naming_granitemoeshared[],
    gguf_naming_gpt_oss[], gguf_naming_llama4[], gguf_naming_glm4_moe[], gguf_naming_dots1[],
    gguf_naming_exaone_moe[], gguf_naming_ernie4_5_moe[], gguf_naming_hunyuan_v1_moe[],
    gguf_naming_hy_v3[], gguf_naming_afmoe[], gguf_naming_laguna[], gguf_naming_cohere2_moe[],
    gguf_naming_minimax_m2[], gguf_naming_gemma[], gguf_naming_gemma2[], gguf_naming_gemma3n[],
    gguf_naming_gemma4[], gguf_naming_gpt2[], gguf_naming_gpt_bigcode[], gguf_naming_gptj[],
    gguf_naming_bloom[], gguf_naming_gpt_neox[], gguf_naming_falcon[], gguf_naming_falcon_plain[],
    gguf_naming_mpt[], gguf_naming_dbrx[], gguf_naming_phi[], gguf_naming_qwen3_next[],
    gguf_naming_qwen3_5[], gguf_naming_qwen3_5_moe[], gguf_naming_lfm2[],
    gguf_naming_mimo_v2_flash[], gguf_naming_deepseek_v3[], gguf_naming_deepseek_v2[],
    gguf_naming_deepseek_v32[], gguf_naming_minicpm3[], gguf_naming_kimi_linear[],
    gguf_naming_falcon_mamba[], gguf_naming_mamba2[], gguf_naming_bamba[],
    gguf_naming_granitemoehybrid[], gguf_naming_jamba[], gguf_naming_falcon_h1[],
    gguf_naming_nemotron_h[];
