/*
 * The table of architectures: a row for each way in which layers compute, with the names of all
 * architectures that compute so. Tensors, keys and their defaults are in gguf/models/models.h.
 *
 * The tensors show whether a product has a bias, a gate or a scale, whether queries are normalized
 * and whether a layer has experts. In every group, zero is the usual choice.
 *
 * Unless a comment names another source, rows follow llama.cpp's src/models/, which converts and
 * runs the same files, and were compared with it or with transformers.
 */
#pragma once

#include "contrib/runner/compute/activation.h"
#include "contrib/runner/compute/attend.h"
#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/rotary.h"

#include <stdbool.h>
#include <stdint.h>

/* The order in which the results of mixer and feed-forward are added to the residual stream. */
enum run_residual {
    RUN_SERIAL,                    /* x += attention(norm(x)); x += feed_forward(norm(x)) */
    RUN_PARALLEL,                  /* x += attention(norm(x)) + feed_forward(norm(x)) */
    RUN_PARALLEL_BY_KEY,           /* the key use_parallel_residual decides */
    RUN_PARALLEL_WITHOUT_FFN_NORM, /* parallel in models that have no ffn_norm (StableLM 2 12B) */
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
    RUN_NEXTN_SKIPPED, /* the layers are not used */
    RUN_NEXTN_NORMED,  /* the state after the output norm, or after the norm of its own head */
    RUN_NEXTN_RAW,     /* the state before that norm */
};

/* The sequence of layers. */
struct run_layer_rules {
    enum run_residual residual;
    enum run_layer_scale output_scale;
    enum run_nextn_kind nextn;
};

/* Norms that are applied without weights. */
enum run_plain_norms {
    RUN_PLAIN_LAYER_NORMS = 1, /* before attention, feed-forward and output */
    RUN_PLAIN_EMBEDDING_NORM = 2,
    RUN_PLAIN_K_NORM = 4, /* of each head's key */
    RUN_PLAIN_V_NORM = 8, /* of each head's value */
};

struct run_norm_rules {
    unsigned plain;             /* bits of enum run_plain_norms */
    bool qk_is_layer_norm;      /* queries and keys get layer norms, whatever the others are */
    bool qk_after_rotary;       /* queries and keys are normalized after the rotation, not before */
    bool qk_plain_after_rotary; /* queries and keys of rotated layers get an RMS norm without
                                   weights after the rotation (llama.cpp: use_kq_norm) */
};

/* Constants that multiply activations. */
struct run_scale_rules {
    bool embedding_by_root;    /* embeddings are multiplied by the square root of n_embd */
    bool logits_divided;       /* logits are divided by logit_scale, not multiplied */
    bool has_minicpm_defaults; /* without keys: embeddings times 12, residuals times
                                  1.4 / √n_layer, logits divided by n_embd / 256 */
};

/*
 * The meaning of the value "reference" of the key tensor_data_layout: rows of weights are in the
 * order of the original checkpoint, which later converters change.
 */
enum run_reference_layout {
    RUN_REFERENCE_SAME,   /* nothing: rows were never moved */
    RUN_REFERENCE_NEOX,   /* the rotation is RUN_ROTARY_NEOX */
    RUN_REFERENCE_GROUPS, /* for each key head, attn_qkv has its queries, the key, the value */
};

/* The activation of the attention's gate. */
enum run_attention_gate { RUN_ATTENTION_SIGMOID, RUN_ATTENTION_SOFTPLUS };

struct run_attention_rules {
    bool scale_is_inverse_width; /* scores are multiplied by 1 / width of a head, not its root */
    bool keys_are_values;        /* layers without window and without attn_v use keys as values */
    bool has_pruned_layers;      /* without heads, attn_output is a product with the layer's
                                    input */

    /* attention is sparse, with an indexer (keys indexer.…) that rotates like this */
    enum run_rotary_kind indexer;
    enum run_attention_gate gate;
    enum run_reference_layout reference;
};

/* Layers whose attention sees a window of tokens, attention.sliding_window. */
struct run_window_rules {
    bool is_chunked;  /* RUN_WINDOW_CHUNKED instead of RUN_WINDOW_SLIDING */
    bool is_unscaled; /* windowed layers rotate without scaling or factors */
};

/* The layers that rotate queries and keys. */
enum run_rotary_layers {
    RUN_ROTARY_ALL,
    RUN_ROTARY_WINDOWED,         /* layers with a sliding window, if the model has any */
    RUN_ROTARY_NOT_EVERY_FOURTH, /* all but 3, 7, …; all if a key turns chunked windows off
                                    (llama.cpp: n_no_rope_layer_step) */
    RUN_ROTARY_LEADING, /* layers with a sliding window and the first leading_dense_block_count */
};

/* The effect of the key rope.scaling.yarn_log_multiplier. */
enum run_log_multiplier {
    RUN_MULTIPLIER_UNUSED,
    RUN_MULTIPLIER_SCALES,  /* its product with ln(factor) goes into the attention's scale */
    RUN_MULTIPLIER_DIVIDES, /* YaRN's factor is divided by this multiplier's factor */
};

/* Rotary position embedding: keys rope.… */
struct run_rotary_rules {
    enum run_rotary_kind kind;
    enum run_rotary_layers layers;
    bool sections_mean_neox; /* with dimension_sections, the rotation is RUN_ROTARY_NEOX */
    bool halves_dense;       /* layers without window rotate half of dimension_count */
    enum run_log_multiplier log_multiplier;
};

struct run_feed_forward_rules {
    enum run_activation activation;
    float sparsity;           /* gates below mean + sparsity · deviation become 0 */
    uint32_t n_sparse_layers; /* … in this many of the first layers */
};

/* The function from router products to probabilities: expert_gating_func. */
enum run_gating {
    RUN_GATE_SOFTMAX,
    RUN_GATE_SIGMOID,
    RUN_GATE_SOFTMAX_WEIGHT, /* softmax over the selected experts only */
};

/* The input of experts, or of the router. */
enum run_expert_input {
    RUN_INPUT_RESIDUAL, /* the residual stream after attention */
    RUN_INPUT_LAYER,    /* the layer's input, before attention */
};

/* Mixture of experts. */
struct run_expert_rules {
    bool weights_before;                /* an expert's weight multiplies its input, not its output
                                           (llama.cpp: weight_before_ffn) */
    enum run_expert_input input;        /* of the experts' own norm, if they have one */
    enum run_expert_input router_input; /* RUN_INPUT_RESIDUAL: the input of the experts */
    float shared_scale;                 /* of the sum of experts and shared experts; 0: 1 */
};

/* Rules of the one model size that gguf_architecture_is_big() recognizes. */
struct run_big_rules {
    bool scale_by_n_embd;  /* scores are multiplied by 1 / √(n_embd / n_head) */
    float alibi_bias;      /* the largest ALiBi bias, which replaces the rotation; 0: none */
    bool no_qk_plain_norm; /* the row's qk_plain_after_rotary does not apply */
};

struct run_architecture {
    const char *names; /* values of general.architecture, separated by spaces */
    struct run_layer_rules layers;
    struct run_norm_rules norms;
    struct run_scale_rules scales;
    struct run_attention_rules attention;
    struct run_window_rules window;
    struct run_rotary_rules rotary;
    struct run_feed_forward_rules feed_forward;
    struct run_expert_rules experts;
    struct run_big_rules big;
};

/* Return the row of a name; NULL for an unknown name. */
const struct run_architecture *run_architecture_find(const char *name);
