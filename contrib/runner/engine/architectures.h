/*
 * The table of architectures: a row for each way in which layers compute, with the names of all
 * architectures that compute so. Tensors, keys and their defaults are in gguf/models/models.h.
 *
 * The tensors show whether a product has a bias, a gate or a scale, whether queries are normalized
 * and whether a layer has experts. Without a bit, a row does the usual.
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

/* Bits for layers, and for what is before, beside and after them. */
enum run_layer_rules {
    /* without these, x += attention(norm(x)); x += feed_forward(norm(x)) */
    RUN_PARALLEL = 1 << 0,                  /* x += attention(norm(x)) + feed_forward(norm(x)) */
    RUN_PARALLEL_BY_KEY = 1 << 1,           /* the key use_parallel_residual decides */
    RUN_PARALLEL_WITHOUT_FFN_NORM = 1 << 2, /* in models that have no ffn_norm (StableLM 2 12B) */

    /* layer_output_scale multiplies the token embeddings, which are then added to the layer's
     * output, not the output */
    RUN_SCALES_EMBEDDINGS = 1 << 3,

    /*
     * The key nextn_predict_layers: number of last layers that only predict further tokens. The
     * first of them can draft (nextn.h), if it is known which hidden state it takes: the one after
     * the output norm (or after the norm of its own head), or before.
     */
    RUN_NEXTN_NORMED = 1 << 4,
    RUN_NEXTN_RAW = 1 << 5,

    /* norms without weights */
    RUN_PLAIN_LAYER_NORMS = 1 << 6, /* before attention, feed-forward and output */
    RUN_PLAIN_EMBEDDING_NORM = 1 << 7,

    /* constants that multiply activations */
    RUN_EMBEDDING_BY_ROOT = 1 << 8, /* embeddings are multiplied by the square root of n_embd */
    RUN_LOGITS_DIVIDED = 1 << 9,    /* logits are divided by logit_scale, not multiplied */
    RUN_MINICPM_DEFAULTS = 1 << 10, /* without keys: embeddings times 12, residuals times
                                       1.4 / √n_layer, logits divided by n_embd / 256 */

    /* feed-forward: in the first 10 layers, all but 5 % of normally distributed gates become 0 */
    RUN_SPARSE_GATES = 1 << 11,

    /* mixture of experts */
    RUN_WEIGHTS_BEFORE = 1 << 12,       /* an expert's weight multiplies its input, not its output
                                           (llama.cpp: weight_before_ffn) */
    RUN_EXPERTS_TAKE_INPUT = 1 << 13,   /* the experts' own norm is of the layer's input, before
                                           attention, not of the residual stream after it */
    RUN_ROUTER_TAKES_INPUT = 1 << 14,   /* the router's input is the layer's, not the experts' */
    RUN_HALF_OF_EXPERTS = 1 << 15,      /* the sum of experts and shared experts is halved … */
    RUN_ROOT_HALF_OF_EXPERTS = 1 << 16, /* … or divided by √2 */
};

/* Bits for attention. */
enum run_attention_rules {
    RUN_SCALE_BY_WIDTH = 1 << 0,  /* scores are multiplied by 1 / width of a head, not its root */
    RUN_KEYS_ARE_VALUES = 1 << 1, /* layers without window and without attn_v use keys as values */
    RUN_PRUNED_LAYERS = 1 << 2,   /* without heads, attn_output is a product with the layer's
                                     input */
    RUN_SOFTPLUS_GATES = 1 << 3,  /* the activation of its gates; else the sigmoid */

    /* attention is sparse, with an indexer (keys indexer.…) that rotates like this */
    RUN_INDEXER_NORMAL = 1 << 4,
    RUN_INDEXER_NEOX = 1 << 5,

    /*
     * The value "reference" of the key tensor_data_layout: rows of weights are in the order of the
     * original checkpoint, which later converters change. For each key head, attn_qkv has its
     * queries, the key, the value; or the rotation is RUN_ROTARY_NEOX.
     */
    RUN_REFERENCE_GROUPS = 1 << 6,
    RUN_REFERENCE_NEOX = 1 << 7,

    /* norms */
    RUN_PLAIN_K_NORM = 1 << 8, /* of each head's key, without weights */
    RUN_PLAIN_V_NORM = 1 << 9,
    RUN_QK_LAYER_NORM = 1 << 10,        /* queries and keys get layer norms */
    RUN_QK_NORM_AFTER_ROTARY = 1 << 11, /* they are normalized after the rotation, not before */
    RUN_QK_PLAIN_NORM = 1 << 12, /* queries and keys of rotated layers: RMS norm without weights
                                    after the rotation (llama.cpp: use_kq_norm) */

    /* windows, attention.sliding_window */
    RUN_CHUNKED_WINDOWS = 1 << 13,  /* RUN_WINDOW_CHUNKED instead of RUN_WINDOW_SLIDING */
    RUN_UNSCALED_WINDOWS = 1 << 14, /* windowed layers rotate without scaling or factors */

    /* the layers that rotate queries and keys, if not all */
    RUN_ROTATES_WINDOWED = 1 << 15,         /* with a sliding window, if the model has any */
    RUN_ROTATES_NOT_EVERY_FOURTH = 1 << 16, /* all but 3, 7, …; all if a key turns chunked windows
                                               off (llama.cpp: n_no_rope_layer_step) */
    RUN_ROTATES_LEADING = 1 << 17,          /* with a sliding window, and the first
                                               leading_dense_block_count */

    /* the rotation */
    RUN_SECTIONS_MEAN_NEOX = 1 << 18, /* with dimension_sections, it is RUN_ROTARY_NEOX */
    RUN_HALVES_DENSE = 1 << 19,       /* layers without window rotate half of dimension_count */
    /* rope.scaling.yarn_log_multiplier: its product with ln(factor) goes into the attention's
     * scale, or YaRN's factor is divided by this multiplier's factor */
    RUN_MULTIPLIER_SCALES = 1 << 20,
    RUN_MULTIPLIER_DIVIDES = 1 << 21,

    /* of the one model size that gguf_architecture_is_big() recognizes */
    RUN_BIG_SCALE_BY_N_EMBD = 1 << 22, /* scores are multiplied by 1 / √(n_embd / n_head) */
    RUN_BIG_ALIBI = 1 << 23,           /* ALiBi with a largest bias of 8 replaces the rotation */
    RUN_BIG_WITHOUT_QK_NORM = 1 << 24, /* RUN_QK_PLAIN_NORM does not apply */
};

/* The function from router products to probabilities: expert_gating_func. */
enum run_gating {
    RUN_GATE_SOFTMAX = 1, /* also if the key is missing */
    RUN_GATE_SIGMOID = 2,
    RUN_GATE_SOFTMAX_WEIGHT = 3, /* softmax over the selected experts only */
};

struct run_architecture {
    const char *names; /* values of general.architecture, separated by spaces */
    enum run_rotary_kind rotary;
    enum run_activation activation; /* of the feed-forward */
    enum run_layer_rules layers;
    enum run_attention_rules attention;
};

/* Return the row of a name; NULL for an unknown name. */
const struct run_architecture *run_architecture_find(const char *name);
