/*
 * The table of architectures: one row each, with what a file's tensors do not show.
 *
 * The tensors show whether a product has a bias, a gate or a scale, whether queries are normalized
 * and whether a layer has experts. A row says which kinds of functions to use, which keys to read,
 * and which tensors are required. Keys that a row does not name are ignored, since files carry keys
 * that their architecture does not use. In every group, zero is the usual choice.
 *
 * Unless a comment names another source, rows follow llama.cpp's src/models/, which converts and
 * runs the same files, and were compared with it or with transformers.
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

/*
 * Tensors that a model of the architecture requires, beyond those that its pieces require
 * themselves (an attention layer always needs queries, keys and an output product). Names are
 * separated by spaces; "a|b" is one or the other. A name that does not end in ".weight", ".bias" or
 * ".scale" means NAME.weight, or a tensor of exactly that name.
 */
struct run_required_tensors {
    const char *model;     /* tensors outside of the layers */
    const char *layer;     /* of every layer that has a mixer or a feed-forward */
    const char *attention; /* of layers with attention */
    const char *recurrent; /* of layers with a recurrent mixer */
    const char *dense;     /* of layers with a dense feed-forward */
    const char *experts;   /* of layers with experts */
};

/* How the results of mixer and feed-forward are added to the residual stream. */
enum run_residual {
    RUN_SERIAL,          /* x += attention(norm(x)); x += feed_forward(norm(x)) */
    RUN_PARALLEL,        /* x += attention(norm(x)) + feed_forward(norm(x)) */
    RUN_PARALLEL_BY_KEY, /* the key use_parallel_residual decides; parallel if it is missing */
    RUN_PARALLEL_WITHOUT_FFN_NORM, /* parallel in models that have no ffn_norm (StableLM 2 12B) */
};

/* The parts that a layer must have. */
enum run_layer_parts {
    RUN_BOTH_PARTS, /* a mixer and a feed-forward */
    RUN_ONE_PART,   /* a mixer or a feed-forward, whose norm is attn_norm in both cases */
    RUN_ANY_PARTS,  /* one, both or none: parts of some layers were pruned */
};

/* The operand of the tensor layer_output_scale. */
enum run_layer_scale {
    RUN_LAYER_SCALES_OUTPUT,     /* the layer's output */
    RUN_LAYER_SCALES_EMBEDDINGS, /* the token embeddings, which are then added to the output */
};

/*
 * The key nextn_predict_layers: number of last layers that only predict further tokens. The first
 * of them can draft (nextn.h), if it is known which hidden state it takes.
 */
enum run_nextn_kind {
    RUN_NEXTN_NONE,    /* no such key */
    RUN_NEXTN_SKIPPED, /* the layers are not used */
    RUN_NEXTN_NORMED,  /* the state after the output norm, or after the norm of its own head */
    RUN_NEXTN_RAW,     /* the state before that norm */
};

/* The sequence of layers. */
struct run_layer_rules {
    enum run_residual residual;
    enum run_layer_scale output_scale;
    enum run_layer_parts parts;
    enum run_nextn_kind nextn;
    /*
     * num_loops: all layers are applied this many times, with the output norm between them
     * unless skip_loop_final_norm
     */
    bool has_loops_keys;
};

/* Norms that are applied without weights. */
enum run_plain_norms {
    RUN_PLAIN_LAYER_NORMS = 1, /* before attention, feed-forward and output */
    RUN_PLAIN_EMBEDDING_NORM = 2,
    RUN_PLAIN_K_NORM = 4, /* of each head's key */
    RUN_PLAIN_V_NORM = 8, /* of each head's value */
};

struct run_norm_rules {
    enum run_norm_kind kind;
    unsigned plain;             /* bits of enum run_plain_norms */
    bool qk_is_layer_norm;      /* queries and keys get layer norms, regardless of `kind` */
    bool qk_after_rotary;       /* queries and keys are normalized after the rotation, not before */
    bool qk_plain_after_rotary; /* queries and keys of rotated layers get an RMS norm without
                                   weights after the rotation (llama.cpp: use_kq_norm) */
    bool has_swin_key;          /* swin_norm: norms follow attention and feed-forward */
};

/* Constants that multiply or bound activations. A default of 0 stands for no scale, no cap. */
enum run_embedding_scale {
    RUN_EMBEDDING_UNSCALED,
    RUN_EMBEDDING_BY_ROOT, /* by the square root of n_embd */
    RUN_EMBEDDING_BY_KEY,  /* by the key embedding_scale */
};

/* The effect of the key logit_scale. */
enum run_logit_scale {
    RUN_LOGITS_UNSCALED,
    RUN_LOGITS_MULTIPLIED,
    RUN_LOGITS_DIVIDED,
};

struct run_scale_rules {
    enum run_embedding_scale embedding;
    float embedding_default;
    enum run_logit_scale logit;
    float logit_default;
    bool has_residual_key;     /* residual_scale */
    bool has_minicpm_defaults; /* without keys: embeddings times 12, residuals times
                                  1.4 / √n_layer, logits divided by n_embd / 256 */
    bool has_softcap_keys;     /* attn_logit_softcapping, final_logit_softcapping */
    float attention_softcap;   /* without key */
    float final_logit_softcap; /* without key */
};

/*
 * The meaning of the value "reference" of the key tensor_data_layout: rows of weights are in the
 * order of the original checkpoint, which later converters change.
 */
enum run_reference_layout {
    RUN_REFERENCE_SAME,   /* nothing: rows were never moved */
    RUN_REFERENCE_NEOX,   /* rotated pairs are those of RUN_ROTARY_NEOX */
    RUN_REFERENCE_GROUPS, /* for each key head, attn_qkv has its queries, the key, the value */
};

/* The activation of the attention's gate. */
enum run_attention_gate { RUN_ATTENTION_SIGMOID, RUN_ATTENTION_SOFTPLUS };

struct run_attention_rules {
    /* Scores are multiplied by 1 / √(width of a head), or: */
    float scale;                 /* this constant; 0: not set */
    bool scale_is_inverse_width; /* 1 / width of a head */
    bool has_scale_key;          /* scale */
    bool has_output_scale_key;   /* output_scale means the same */
    bool has_value_scale_key;    /* value_scale: multiplies the result of attention */
    bool has_clamp_key;          /* clamp_kqv */

    float alibi_bias;   /* the largest ALiBi bias; 0: none */
    bool has_alibi_key; /* max_alibi_bias */

    /* Queries are multiplied by 1 + scale · ln(1 + ⌊(position + 1) / length⌋), in layers that are
     * not rotated. */
    float temperature_scale;
    uint32_t temperature_length;
    bool has_temperature_keys; /* temperature_scale, temperature_length: by ⌊position / length⌋, in
                                  all layers; without the latter the original context counts */

    /* shared_kv_layers: number of last layers that use keys and values of earlier ones */
    bool has_shared_kv_key;
    uint32_t n_layer_kv_from_start; /* the first of them; 0: the key decides */

    /* attention is sparse, with an indexer (keys indexer.…) that rotates like this */
    enum run_rotary_kind indexer;
    enum run_attention_gate gate;
    enum run_reference_layout reference;
};

/* Layers whose attention sees a window of tokens: key attention.sliding_window. */
struct run_window_rules {
    enum run_window kind;
    uint32_t size; /* without that key */
    /* every `period`-th layer has no window, the last of each period; 0: all layers have it */
    uint32_t period;
    bool dense_first;   /* … the first of each period */
    bool has_dims_keys; /* key_length_swa, value_length_swa, rope.dimension_count_swa */
    float rope_base;    /* of windowed layers if no key gives it; 0: as in the others */
    bool is_unscaled;   /* windowed layers rotate without scaling or factors */
};

/* The layers that rotate queries and keys. */
enum run_rotary_layers {
    RUN_ROTARY_ALL,
    RUN_ROTARY_WINDOWED,         /* layers with a sliding window, if the model has any */
    RUN_ROTARY_NOT_EVERY_FOURTH, /* all but 3, 7, …; all if the row has a window and a key turns
                                    it off (llama.cpp: n_no_rope_layer_step) */
    RUN_ROTARY_LEADING, /* those with a sliding window and the first leading_dense_block_count */
};

/* The effect of the key rope.scaling.yarn_log_multiplier. */
enum run_log_multiplier {
    RUN_MULTIPLIER_UNUSED,
    RUN_MULTIPLIER_SCALES,  /* its product with ln(factor) goes into the attention's scale */
    RUN_MULTIPLIER_DIVIDES, /* YaRN's factor is divided by that of this multiplier */
};

/* Rotary position embedding: keys rope.… */
struct run_rotary_rules {
    enum run_rotary_kind kind;
    enum run_rotary_layers layers;
    bool has_finetuned_key;  /* scaling.finetuned: no rotation if it is false */
    bool has_alpha_key;      /* scaling.alpha: the base times alpha^(width / (width - 2)) */
    bool sections_mean_neox; /* with dimension_sections, pairs are those of RUN_ROTARY_NEOX */
    bool halves_dense;       /* layers without window rotate half of dimension_count */
    float yarn_beta_fast;    /* without key; 0: 32 */
    enum run_log_multiplier log_multiplier;
};

struct run_feed_forward_rules {
    enum run_activation activation;
    bool has_swiglu_clamp_keys; /* swiglu_clamp_exp, swiglu_clamp_shexp, by layer */
    float sparsity;             /* gates below mean + sparsity · deviation become 0 */
    uint32_t n_sparse_layers;   /* … in this many of the first layers */
};

/* How the router's products become probabilities of experts; expert_gating_func in files. */
enum run_gating {
    RUN_GATE_SOFTMAX,
    RUN_GATE_SIGMOID,
    RUN_GATE_SOFTMAX_WEIGHT, /* softmax over the chosen ones only */
};

/* Division of the chosen experts' weights by their sum. */
enum run_weights_norm { RUN_WEIGHTS_PLAIN, RUN_WEIGHTS_NORMED, RUN_WEIGHTS_BY_KEY };

/* The input of experts, or of the router. */
enum run_expert_input {
    RUN_INPUT_RESIDUAL, /* the residual stream after attention */
    RUN_INPUT_LAYER,    /* the layer's input, before attention */
};

/* Mixture of experts. */
struct run_expert_rules {
    enum run_gating gating;
    bool has_gating_key; /* expert_gating_func decides if it is there */
    enum run_weights_norm weights_norm;
    bool has_weights_scale_key;         /* expert_weights_scale */
    bool weights_before;                /* an expert's weight multiplies its input, not its output
                                           (llama.cpp: weight_before_ffn) */
    enum run_expert_input input;        /* of experts that have a norm of their own, before it */
    enum run_expert_input router_input; /* RUN_INPUT_RESIDUAL: the input of the experts */
    float shared_scale;                 /* of the sum of experts and shared experts; 0: 1 */
    bool has_chunk_keys; /* experts_per_group, expert_group_scale: see struct run_experts */
};

struct run_recurrent_rules {
    uint32_t rwkv_version;  /* of the time mixing, unless the key architecture_version says another;
                               0: no RWKV */
    bool has_rescaling_key; /* rescale_every_n_layers: after so many layers, x is halved */
};

/*
 * A model size of the architecture that differs from the others in more than its sizes. No key
 * marks it: llama.cpp recognizes these models by their number of layers or experts too.
 */
struct run_variant {
    const char *name; /* NULL: no such variant */
    uint32_t n_layer; /* the numbers that identify the model: 0 matches any */
    uint32_t n_expert;
    bool scale_by_n_embd;  /* scores are multiplied by 1 / √(n_embd / n_head) */
    float alibi_bias;      /* the largest ALiBi bias, which replaces the rotation; 0: none */
    bool no_qk_plain_norm; /* the row's qk_plain_after_rotary does not apply */
};

struct run_architecture {
    const char *name; /* general.architecture */
    struct run_required_tensors required;
    struct run_layer_rules layers;
    struct run_norm_rules norms;
    struct run_scale_rules scales;
    struct run_attention_rules attention;
    struct run_window_rules window;
    struct run_rotary_rules rotary;
    struct run_feed_forward_rules feed_forward;
    struct run_expert_rules experts;
    struct run_recurrent_rules recurrent;
    struct run_variant variant;
};

/* Return the row of a name; NULL if it is unknown. */
const struct run_architecture *run_architecture_find(const char *name);

/* Return the row's variant if it matches the model; else NULL. */
const struct run_variant *run_architecture_variant(const struct run_architecture *architecture,
                                                   uint32_t n_layer, uint32_t n_expert);

#endif
