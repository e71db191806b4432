/* The feed-forward part of a layer: a dense network, a mixture of experts, or both. */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* Networks of the same shape: down(f(gate(x)) · up(x)), or down(f(up(x))) without gate. */
struct run_ffn {
    uint64_t n_ff;
    struct run_linear gate, up, down; /* of all networks */
    struct run_linear
        gate_up; /* gate and up in one, the gate's rows first; then these two are empty */
    struct run_norm_layer sub_norm; /* before `down` */
    enum run_activation activation;
    const struct run_xielu *xielu;
    float clamp;    /* of gated activations; 0: none */
    float sparsity; /* of gates, see run_gaussian_top_k(); 0: none */
};

/*
 * Loads `n` networks with inputs and outputs of `width` elements. Their tensors are ffn_down,
 * ffn_up, … with `end` after the name: "", "_shexp", "_exps" or "_chexps". The activation is the
 * architecture's, without clamp or sparsity.
 */
void run_ffn_load(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n,
                  uint64_t width, const char *end, struct run_ffn *ffn);

/* out = network number `matrix` of n rows of x. */
void run_ffn_apply(const struct run_ffn *ffn, const struct run_pass *pass, uint64_t matrix,
                   const float *x, size_t n, float *out);

/* Mixture of experts (Shazeer et al. 2017): a router selects the top-k experts per token. */
struct run_experts {
    struct run_linear router;        /* [n_embd] to a score for each expert */
    const float *router_scale;       /* [n_embd]: multiplies the router's input, which then is the
                                        RMS-normalized residual divided by √n_embd; or NULL */
    struct run_norm_layer norm;      /* of the experts alone; the shared network has another one */
    struct run_norm_layer post_norm; /* of the sum of the experts */
    const float *selection_bias; /* [n], or NULL: added to the probabilities for choosing experts */
    struct run_linear narrow,
        widen;    /* [n_embd] to `width` before the networks and back after them, or empty */
    size_t width; /* of the networks' input and output: n_embd without `narrow` */
    struct run_ffn networks;
    struct run_ffn chunks; /* one for each group of neighbouring experts, applied to their
                                  output (Grove MoE's adjugate experts); or empty */
};

/* The inputs that a feed-forward may take, [n][n_embd] each. */
struct run_feed_forward_input {
    const float *normed;   /* the residual, normalized */
    const float *residual; /* the residual after attention */
    const float *layer;    /* the layer's input; valid only for rows with RUN_…_INPUT */
};

void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, struct run_experts *experts);

/* out = the weighted sum of each token's experts, [n][n_embd]. */
void run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                       const struct run_feed_forward_input *in, float *out);

/*
 * The feed-forward part of RWKV: value(max(key(x'), 0)²), where x' is interpolated between the
 * token and the one before it. Versions before 7 multiply it by sigmoid(receptance(x'')).
 */
struct run_channel_mix {
    bool is_there;
    float *last;                              /* [n_embd]: the token before the first */
    const float *key_lerp, *receptance_lerp;  /* [n_embd] */
    struct run_linear key, value, receptance; /* the last may be empty */
};

struct run_feed_forward {
    bool is_there; /* false in layers without feed-forward */
    bool has_experts;
    struct run_ffn network; /* dense, or the shared experts beside a mixture; may be empty */
    struct run_norm_layer network_post_norm;
    struct run_linear shared_gate; /* [n_embd] to 1, or empty: its sigmoid multiplies the output of
                                      the shared experts */
    struct run_experts experts;
    struct run_channel_mix channel_mix; /* RWKV's feed-forward, instead of all others */
};

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct gguf_layer_shape *shape, struct run_feed_forward *layer);

/* out = feed-forward, [n][n_embd]. */
void run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                            const struct run_feed_forward_input *in, float *out);
