#include "contrib/runner/engine/feed_forward.h"

#include <errno.h>

static void load_network(struct run_loader *loader, const struct run_hparams *hparams,
                         const struct run_layer_shape *shape, const char *end,
                         struct run_ffn *network)
{
    run_ffn_load(loader, hparams, 1, hparams->n_embd, end, network);
    network->clamp = shape->clamp;
    network->sparsity = shape->sparsity;
}

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct run_layer_shape *shape, struct run_feed_forward *layer)
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
    run_channel_mix_load(loader, hparams, &layer->channel_mix);
    layer->is_there =
        layer->has_experts || layer->network.down.weight.data || layer->channel_mix.is_there;
}

static int add_shared(const struct run_feed_forward *layer, const struct run_pass *pass,
                      const float *x, float *out)
{
    const float scale = pass->hparams->architecture->experts.shared_scale;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *shared = run_scratch_take(pass->scratch, n * n_embd);
    float *weights = run_scratch_take(pass->scratch, n);
    int code;

    if (!shared || !weights)
        return -ENOMEM;
    code = run_ffn_apply(&layer->network, pass, 0, x, n, shared);
    if (code < 0)
        return code;
    run_norm_apply(&layer->network_post_norm, shared, n, n_embd, shared);
    if (layer->shared_gate.weight.data)
        run_linear_apply(&layer->shared_gate, 0, x, n, weights);
    for (size_t i = 0; i < n; i++) {
        const float weight = layer->shared_gate.weight.data ? run_sigmoid(weights[i]) : 1;

        for (size_t j = 0; j < n_embd; j++)
            out[i * n_embd + j] += weight * shared[i * n_embd + j];
    }
    if (scale != 0)
        for (size_t i = 0; i < n * n_embd; i++)
            out[i] *= scale;
    return 0;
}

int run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                           const struct run_feed_forward_input *in, float *out)
{
    int code;

    if (layer->channel_mix.is_there)
        return run_channel_mix_apply(&layer->channel_mix, pass, in->normed, out);
    if (!layer->has_experts)
        return run_ffn_apply(&layer->network, pass, 0, in->normed, pass->n, out);
    code = run_experts_apply(&layer->experts, pass, in, out);
    if (code == 0 && layer->network.down.weight.data)
        code = add_shared(layer, pass, in->normed, out);
    return code;
}
