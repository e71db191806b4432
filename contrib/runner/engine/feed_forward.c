#include "contrib/runner/engine/feed_forward.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `end` is behind the names: "", or "_shexp" of shared experts. The width is what `down` takes. */
static void load_network(struct run_loader *loader, const struct run_hparams *hparams,
                         const char *end, struct run_network *network)
{
    const uint64_t n_embd = hparams->n_embd;
    char name[64];
    uint64_t n_up;

    snprintf(name, sizeof name, "ffn_down%s.weight", end);
    network->n_ff = run_load_n_elements(loader, name) / n_embd;
    network->activation = hparams->architecture->activation;
    snprintf(name, sizeof name, "ffn_down%s", end);
    run_load_linear(loader, name, network->n_ff, n_embd, &network->down);
    snprintf(name, sizeof name, "ffn_gate%s", end);
    run_load_linear_if(loader, name, n_embd, network->n_ff, &network->gate);
    snprintf(name, sizeof name, "ffn_up%s.weight", end);
    n_up = run_load_n_rows(loader, name);
    snprintf(name, sizeof name, "ffn_up%s", end);
    if (!network->gate.weight.data && n_up == 2 * network->n_ff && n_up > 0)
        run_load_linear(loader, name, n_embd, n_up, &network->gate_up);
    else
        run_load_linear(loader, name, n_embd, network->n_ff, &network->up);
    snprintf(name, sizeof name, "ffn_sub_norm%s", end);
    run_load_norm_if(loader, name, hparams->architecture->norm, hparams->norm_epsilon,
                     network->n_ff, &network->sub_norm);
}

void run_feed_forward_load(struct run_loader *loader, const struct run_hparams *hparams,
                           const struct run_layer_shape *shape, struct run_feed_forward *layer)
{
    layer->has_experts = run_loader_has(loader, "ffn_gate_inp.weight");
    if (layer->has_experts) {
        run_experts_load(loader, hparams, &layer->experts);
        if (run_loader_has(loader, "ffn_down_shexp.weight"))
            load_network(loader, hparams, "_shexp", &layer->network);
        run_load_linear_if(loader, "ffn_gate_inp_shexp", hparams->n_embd, 1, &layer->shared_gate);
    } else if (run_loader_has(loader, "ffn_down.weight") ||
               run_loader_has(loader, "ffn_up.weight")) {
        load_network(loader, hparams, "", &layer->network);
    }
    if (hparams->xielu)
        layer->network.xielu = &hparams->xielu[shape - hparams->layers];
    run_channel_mix_load(loader, hparams, &layer->channel_mix);
    layer->is_there =
        layer->has_experts || layer->network.down.weight.data || layer->channel_mix.is_there;
}

void run_feed_forward_reset(const struct run_feed_forward *layer)
{
    if (layer->channel_mix.is_there)
        run_channel_mix_reset(&layer->channel_mix);
}

/* Takes gate and up, side by side in a row, apart. */
static void split(const float *both, size_t n, size_t n_ff, float *gate, float *up)
{
    for (size_t i = 0; i < n; i++, both += 2 * n_ff) {
        memcpy(gate + i * n_ff, both, n_ff * sizeof *gate);
        memcpy(up + i * n_ff, both + n_ff, n_ff * sizeof *up);
    }
}

int run_network_apply(const struct run_network *network, const struct run_pass *pass,
                      uint64_t matrix, const float *x, size_t n, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_ff = network->n_ff;
    const bool is_fused = network->gate_up.weight.data;
    float *up = run_scratch_take(pass->scratch, n * n_ff);
    float *gate = run_scratch_take(pass->scratch, n * n_ff);
    float *both = is_fused ? run_scratch_take(pass->scratch, 2 * n * n_ff) : NULL;

    if (!up || !gate || (is_fused && !both))
        return -ENOMEM;
    if (is_fused) {
        run_linear_apply(&network->gate_up, matrix, x, n, both);
        split(both, n, n_ff, gate, up);
    } else {
        run_linear_apply(&network->up, matrix, x, n, up);
        if (network->gate.weight.data)
            run_linear_apply(&network->gate, matrix, x, n, gate);
    }
    if (is_fused || network->gate.weight.data) {
        run_activate_gated(network->activation, gate, up, n * n_ff);
        up = gate;
    } else {
        run_activate(network->activation, network->xielu, up, n * n_ff);
    }
    run_norm_apply(&network->sub_norm, up, n, n_ff, up);
    run_linear_apply(&network->down, matrix, up, n, out);
    run_scratch_release(pass->scratch, mark);
    return 0;
}

static int add_shared(const struct run_feed_forward *layer, const struct run_pass *pass,
                      const float *x, float *out)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *shared = run_scratch_take(pass->scratch, n * n_embd);
    float *weights = run_scratch_take(pass->scratch, n);
    int code;

    if (!shared || !weights)
        return -ENOMEM;
    code = run_network_apply(&layer->network, pass, 0, x, n, shared);
    if (code < 0)
        return code;
    if (layer->shared_gate.weight.data)
        run_linear_apply(&layer->shared_gate, 0, x, n, weights);
    for (size_t i = 0; i < n; i++) {
        const float weight = layer->shared_gate.weight.data ? run_sigmoid(weights[i]) : 1;

        for (size_t j = 0; j < n_embd; j++)
            out[i * n_embd + j] += weight * shared[i * n_embd + j];
    }
    return 0;
}

int run_feed_forward_apply(const struct run_feed_forward *layer, const struct run_pass *pass,
                           const float *x, float *out)
{
    int code;

    if (layer->channel_mix.is_there)
        return run_channel_mix_apply(&layer->channel_mix, pass, x, out);
    if (!layer->has_experts)
        return run_network_apply(&layer->network, pass, 0, x, pass->n, out);
    code = run_experts_apply(&layer->experts, pass, x, out);
    if (code == 0 && layer->network.down.weight.data)
        code = add_shared(layer, pass, x, out);
    return code;
}
