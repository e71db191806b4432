/* One feed-forward network, or several of the same shape. */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* down(f(gate(x)) · up(x)), or down(f(up(x))) without gate. */
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
