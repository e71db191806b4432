#include "contrib/runner/engine/feed_forward.h"

#include "contrib/runner/engine/recurrent_parts.h"

#include <stdio.h>

enum { NAME_BYTES = 64 };

/* Write the name ffn_WHAT END WEIGHT. */
static const char *name_of(const char *what, const char *end, const char *weight,
                           char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "ffn_%s%s%s", what, end, weight);
    return name;
}

void run_ffn_load(struct run_loader *loader, const struct run_hparams *hparams, uint64_t n,
                  uint64_t width, const char *end, struct run_ffn *ffn)
{
    char name[NAME_BYTES];
    uint64_t n_ff, n_up;

    n_ff = run_load_n_elements(loader, name_of("down", end, ".weight", name)) / n / width;
    ffn->n_ff = n_ff;
    ffn->activation = hparams->architecture->activation;
    run_load_linears(loader, name_of("down", end, "", name), n_ff, width, n, &ffn->down);
    run_load_norm_if(loader, name_of("sub_norm", end, "", name), hparams->norm_kind,
                     hparams->norm_epsilon, n_ff, &ffn->sub_norm);
    if (run_loader_has(loader, name_of("gate_up", end, ".weight", name))) {
        run_load_linears(loader, name_of("gate_up", end, "", name), width, 2 * n_ff, n,
                         &ffn->gate_up);
        return;
    }
    if (run_loader_has(loader, name_of("gate", end, ".weight", name)))
        run_load_linears(loader, name_of("gate", end, "", name), width, n_ff, n, &ffn->gate);
    n_up = run_load_n_rows(loader, name_of("up", end, ".weight", name)) / n;
    /* Without a separate gate, `up` may have the gate's rows too. */
    if (!ffn->gate.weight.data && n_up == 2 * n_ff && n_up > 0)
        run_load_linears(loader, name_of("up", end, "", name), width, n_up, n, &ffn->gate_up);
    else
        run_load_linears(loader, name_of("up", end, "", name), width, n_ff, n, &ffn->up);
}

void run_ffn_apply(const struct run_ffn *ffn, const struct run_pass *pass, uint64_t matrix,
                   const float *x, size_t n, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_ff = ffn->n_ff;
    const bool is_fused = ffn->gate_up.weight.data;
    float *up = run_scratch_take(pass->scratch, n * n_ff);
    float *gate = run_scratch_take(pass->scratch, n * n_ff);
    float *both = is_fused ? run_scratch_take(pass->scratch, 2 * n * n_ff) : NULL;

    if (is_fused) {
        run_linear_apply(&ffn->gate_up, matrix, x, n, both);
        run_copy_rows(both, 2 * n_ff, n, n_ff, gate, n_ff);
        run_copy_rows(both + n_ff, 2 * n_ff, n, n_ff, up, n_ff);
    } else {
        const struct run_linear_to list[] = {{&ffn->up, up}, {&ffn->gate, gate}};

        run_linears_apply(list, 2, matrix, x, n);
    }
    if (is_fused || ffn->gate.weight.data) {
        if (ffn->sparsity != 0)
            run_gaussian_top_k(ffn->sparsity, gate, n, n_ff);
        run_activate_gated_clamped(ffn->activation, ffn->clamp, gate, up, n * n_ff);
        up = gate;
    } else {
        run_activate(ffn->activation, ffn->xielu, up, n * n_ff);
    }
    run_norm_apply(&ffn->sub_norm, up, n, n_ff, up);
    run_linear_apply(&ffn->down, matrix, up, n, out);
    run_scratch_release(pass->scratch, mark);
}

/* Leaves `layer` empty if the tensors of channel mixing are missing. */
static void load_channel_mix(struct run_loader *loader, const struct run_hparams *hparams,
                             struct run_channel_mix *layer)
{
    const uint64_t n_embd = hparams->n_embd;
    const uint64_t n_ff = run_load_n_rows(loader, "channel_mix_key.weight");

    layer->is_there = n_ff > 0;
    if (!layer->is_there)
        return;
    run_load_linear(loader, "channel_mix_key", n_embd, n_ff, &layer->key);
    run_load_linear(loader, "channel_mix_value", n_ff, n_embd, &layer->value);
    layer->key_lerp =
        run_load_rwkv_lerp(loader, "channel_mix_lerp_k.weight", "ffn.time_mix_k", n_embd);
    run_load_linear_if(loader, "channel_mix_receptance", n_embd, n_embd, &layer->receptance);
    if (layer->receptance.weight.data)
        layer->receptance_lerp =
            run_load_rwkv_lerp(loader, "channel_mix_lerp_r.weight", "ffn.time_mix_r", n_embd);
    layer->last = run_load_state(loader, 1, n_embd, 0);
}

/* out = channel mix of x, both [n][n_embd]. */
static void apply_channel_mix(const struct run_channel_mix *layer, const struct run_pass *pass,
                              const float *x, float *out)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, n_ff = layer->key.weight.ne[1];
    float *difference = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *keys = run_scratch_take(pass->scratch, n * n_ff);

    run_token_shift(pass, layer->last, x, difference);
    run_lerp(pass, x, difference, layer->key_lerp, false, mixed);
    run_linear_apply(&layer->key, 0, mixed, n, keys);
    run_activate(RUN_RELU_SQUARED, NULL, keys, n * n_ff);
    if (!layer->receptance.weight.data) {
        run_linear_apply(&layer->value, 0, keys, n, out);
        return;
    }
    run_lerp(pass, x, difference, layer->receptance_lerp, false, mixed);
    run_linear_apply(&layer->receptance, 0, mixed, n, out);
    run_linear_apply(&layer->value, 0, keys, n, mixed);
    run_activate_gated(RUN_SIGMOID, out, mixed, n * n_embd);
}

static void load_network(struct run_loader *loader, const struct run_hparams *hparams,
                         const struct gguf_layer_shape *shape, const char *end,
                         struct run_ffn *network)
{
    run_ffn_load(loader, hparams, 1, hparams->n_embd, end, network);
    network->clamp = shape->clamp;
    network->sparsity = shape->sparsity;
}

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct gguf_layer_shape *shape, struct run_feed_forward *layer)
{
    layer->has_experts = run_loader_has(loader, "ffn_gate_inp.weight");
    if (layer->has_experts) {
        run_experts_load(loader, hparams, shape, &layer->experts);
        if (run_loader_has(loader, "ffn_down_shexp.weight"))
            load_network(loader, hparams, shape, "_shexp", &layer->network);
        else if (run_loader_has(loader, "ffn_down.weight"))
            load_network(loader, hparams, shape, "", &layer->network);
        run_load_stream_norm_if(loader, hparams, "post_ffw_norm_1", &layer->network_post_norm);
        run_load_linear_if(loader, "ffn_gate_inp_shexp", hparams->n_embd, 1, &layer->shared_gate);
    } else if (run_loader_has(loader, "ffn_down.weight") ||
               run_loader_has(loader, "ffn_up.weight")) {
        load_network(loader, hparams, shape, "", &layer->network);
    }
    if (hparams->xielu)
        layer->network.xielu = &hparams->xielu[shape - hparams->layers];
    load_channel_mix(loader, hparams, &layer->channel_mix);
    layer->is_there =
        layer->has_experts || layer->network.down.weight.data || layer->channel_mix.is_there;
}

static void add_shared(const struct run_feed_forward *layer, const struct run_pass *pass,
                       const float *x, float *out)
{
    const enum run_layer_rules rules = pass->hparams->architecture->layers;
    const float scale = rules & RUN_HALF_OF_EXPERTS        ? 0.5f
                        : rules & RUN_ROOT_HALF_OF_EXPERTS ? 0.70710678118654752f
                                                           : 1;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *shared = run_scratch_take(pass->scratch, n * n_embd);
    float *weights = run_scratch_take(pass->scratch, n);

    run_ffn_apply(&layer->network, pass, 0, x, n, shared);
    run_norm_apply(&layer->network_post_norm, shared, n, n_embd, shared);
    if (layer->shared_gate.weight.data)
        run_linear_apply(&layer->shared_gate, 0, x, n, weights);
    for (size_t i = 0; i < n; i++) {
        const float weight = layer->shared_gate.weight.data ? run_sigmoid(weights[i]) : 1;

        for (size_t j = 0; j < n_embd; j++)
            out[i * n_embd + j] += weight * shared[i * n_embd + j];
    }
    if (scale != 1)
        for (size_t i = 0; i < n * n_embd; i++)
            out[i] *= scale;
}

void run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                            const struct run_feed_forward_input *in, float *out)
{
    if (layer->channel_mix.is_there) {
        apply_channel_mix(&layer->channel_mix, pass, in->normed, out);
    } else if (!layer->has_experts) {
        run_ffn_apply(&layer->network, pass, 0, in->normed, pass->n, out);
    } else {
        run_experts_apply(&layer->experts, pass, in, out);
        if (layer->network.down.weight.data)
            add_shared(layer, pass, in->normed, out);
    }
}
