#include "contrib/runner/engine/feed_forward.h"

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
