/*
 * The architectures, a row each: what the tensors of a file do not tell by being there.
 *
 * Whether a product has a bias, a gate or a scale, whether queries are normalized or a layer has
 * experts, is seen from the tensors. A row says which kinds of functions are meant and which keys
 * count: keys that its row does not name are ignored, since files carry some that their
 * architecture does not use.
 */
#ifndef GGUFS_RUNNER_ARCHITECTURES_H
#define GGUFS_RUNNER_ARCHITECTURES_H

#include "contrib/runner/compute/activation.h"
#include "contrib/runner/compute/attend.h"
#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/rotary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How attention and feed-forward of a layer come together. */
enum run_residual {
    RUN_SERIAL,          /* x += attention(norm(x)); x += feed_forward(norm(x)) */
    RUN_PARALLEL,        /* x += attention(norm(x)) + feed_forward(norm(x)) */
    RUN_PARALLEL_BY_KEY, /* as the key use_parallel_residual says; parallel without it */
};

/* What embeddings are multiplied by. */
enum run_embedding_scale {
    RUN_EMBEDDING_PLAIN,
    RUN_EMBEDDING_BY_ROOT, /* the square root of the width */
    RUN_EMBEDDING_BY_KEY,  /* embedding_scale */
};

/* What the key logit_scale does. */
enum run_logit_scale {
    RUN_LOGITS_PLAIN,
    RUN_LOGITS_MULTIPLIED,
    RUN_LOGITS_DIVIDED,
};

/* How probabilities of experts are made of the router's products. */
enum run_gating {
    RUN_GATE_SOFTMAX,
    RUN_GATE_SIGMOID,
    RUN_GATE_SOFTMAX_CHOSEN, /* softmax over the chosen ones only */
};

/* Whether the weights of the chosen experts are divided by their sum. */
enum run_weights_norm { RUN_WEIGHTS_PLAIN, RUN_WEIGHTS_NORMED, RUN_WEIGHTS_BY_KEY };

/* Which layers rotate queries and keys. */
enum run_rotary_layers {
    RUN_ROTARY_ALL,
    RUN_ROTARY_WINDOWED, /* those with a sliding window, if the model has such layers */
    RUN_ROTARY_SKIPPING, /* all but every fourth: 3, 7, …; all if a key turned the row's window off
                          */
    RUN_ROTARY_LEADING,  /* those with a sliding window and the first leading_dense_block_count */
};

/* What it means if the key tensor_data_layout is "reference": converters have moved rows of weights
 * since. */
enum run_reference {
    RUN_REFERENCE_SAME,   /* nothing: rows were never moved */
    RUN_REFERENCE_HALVES, /* rotated pairs are as RUN_ROTARY_NEOX */
    RUN_REFERENCE_GROUPS, /* attn_qkv has for each head of keys its queries, the key, the value */
};

/* What the key rope.scaling.yarn_log_multiplier does. */
enum run_log_multiplier {
    RUN_MULTIPLIER_UNUSED,
    RUN_MULTIPLIER_SCALES,  /* its product with ln(factor) goes into the attention's scale */
    RUN_MULTIPLIER_DIVIDES, /* YaRN's factor is divided by that of this multiplier */
};

/* What makes the attention's gate of the product with attn_gate. */
enum run_attention_gate { RUN_ATTENTION_SIGMOID, RUN_ATTENTION_SOFTPLUS };

/* What the tensor layer_output_scale does. */
enum run_layer_scale {
    RUN_LAYER_SCALES_OUTPUT, /* it multiplies what the layer gives */
    RUN_LAYER_SCALES_TOKENS, /* it multiplies the embeddings, which are added to that */
};

/* Norms that are there though they have no weights. */
enum run_bare_norms {
    RUN_BARE_LAYERS = 1,     /* before attention, feed-forward and output */
    RUN_BARE_EMBEDDINGS = 2, /* of embeddings */
    RUN_BARE_KEYS = 4,       /* of each head's key */
    RUN_BARE_VALUES = 8,     /* of each head's value */
};

struct run_architecture {
    const char *name;           /* general.architecture */
    bool has_prediction_layers; /* key nextn_predict_layers: that many of the last layers only
                                   predict further tokens and are left out */

    enum run_norm_kind norm;
    unsigned bare_norms;     /* of enum run_bare_norms */
    bool head_norm_is_layer; /* queries and keys get layer norms, whatever `norm` says */
    bool has_swin_norm;      /* key swin_norm: norms are behind attention, feed-forward */
    bool has_loops; /* key num_loops: all layers are gone through so often, with the output's norm
                       between unless skip_loop_final_norm */
    enum run_layer_scale layer_scale;
    enum run_residual residual;
    bool has_residual_scale; /* key residual_scale */
    enum run_embedding_scale embedding_scale;
    enum run_logit_scale logit_scale;
    float embedding_default, logit_default; /* those scales without key; 0: 1 */
    bool has_minicpm_scales; /* without those keys: embeddings times 12, residuals times
                                1.4 / √n_layer, logits divided by n_embd / 256 */
    bool has_softcap;        /* keys attn_logit_softcapping, final_logit_softcapping */
    float attention_softcap, final_softcap; /* without key */

    uint32_t rwkv_version;    /* RWKV's time mixing, if key architecture_version says no other */
    bool has_layer_rescaling; /* key rescale_every_n_layers: behind so many layers, half of it */

    enum run_rotary_kind rotary;
    enum run_rotary_layers rotary_layers;
    enum run_reference reference;
    bool rotary_by_key;      /* key rope.scaling.finetuned, if it is false: no rotation */
    bool norm_after_rotary;  /* q and k are normalized behind the rotation */
    bool norms_rotated;      /* q and k of rotated layers get an RMS norm without weights behind it,
                                unless the model has 128 experts (Llama 4) */
    bool scale_is_inverse;   /* the attention's scale is 1 / width of a head, not of its root */
    float temperature_scale; /* queries of layers that are not rotated are multiplied by */
    uint32_t temperature_length; /* 1 + scale · ln(1 + ⌊(position + 1) / length⌋) */
    bool has_temperature;        /* keys attention.temperature_scale, .temperature_length: all
                                    queries, by ⌊position / length⌋; without the latter the original
                                    context counts */
    float attention_scale;       /* instead of 1 / √width; 0: that */
    bool has_attention_scale;    /* key attention.scale */
    bool has_output_scale;       /* key attention.output_scale means the same */
    bool has_value_scale;        /* key attention.value_scale: multiplies what attention finds */
    enum run_attention_gate attention_gate;
    uint32_t head_scale_layers; /* with so many layers the attention's scale is of n_embd / n_head,
                                   not of the head's width (the 27B of Gemma) */
    bool has_clamp;             /* key attention.clamp_kqv */
    bool has_alibi;             /* key attention.max_alibi_bias */
    float alibi;                /* the largest bias if no key says it */
    uint32_t alibi_layers;      /* only with so many layers, which then do not rotate; 0: always */
    enum run_window window;     /* key attention.sliding_window */
    uint32_t window_default;    /* if there is no such key */
    uint32_t window_period;     /* all but the last layer of so many have the window; 0: all */
    bool window_period_leads;   /* … all but the first */
    bool has_window_dims;       /* keys attention.key_length_swa, attention.value_length_swa,
                                   rope.dimension_count_swa */
    bool has_shared_kv; /* key attention.shared_kv_layers: so many of the last layers use keys and
                           values of earlier ones */
    uint32_t own_kv_layers;       /* layers from this one on do so; 0: as the key says */
    enum run_rotary_kind indexer; /* attention is sparse, by an indexer that rotates like this: keys
                                     attention.indexer.… */
    bool halves_rotation;         /* layers without window rotate half of rope.dimension_count */
    bool has_rotary_alpha;  /* key rope.scaling.alpha: the base times alpha^(width / (width - 2)) */
    bool sections_are_neox; /* with key rope.dimension_sections pairs are as RUN_ROTARY_NEOX */
    float beta_fast;        /* YaRN's without key; 0: 32 */
    float window_base;      /* rotary base of windowed layers if no key says it; 0: the same */
    bool window_is_unscaled; /* windowed layers rotate without scaling or factors */
    enum run_log_multiplier log_multiplier;

    enum run_activation activation;
    enum run_gating gating;
    bool gating_by_key; /* key expert_gating_func, if it is there, decides */
    enum run_weights_norm weights_norm;
    bool has_weights_scale; /* key expert_weights_scale */
    bool weighs_input;      /* an expert's weight multiplies its input */
    bool experts_lead;      /* experts with a norm of their own get what the layer gets */
    bool router_leads;      /* the router gets what the layer gets, without norm */
    float shared_scale;     /* of the sum of experts and what is beside them; 0: 1 */
    bool has_chunks;        /* keys experts_per_group, expert_group_scale: see struct run_experts */
    bool has_swiglu_clamp;  /* keys swiglu_clamp_exp, swiglu_clamp_shexp, by layer */
    float sparsity;         /* gates not so many deviations above their mean are left out … */
    uint32_t sparse_layers; /* … in so many layers from the first on */
};

/* The row of a name; NULL if it is unknown. */
const struct run_architecture *run_architecture_find(const char *name);

#endif
