#include "contrib/runner/engine/channel_mix.h"

#include <errno.h>

void run_channel_mix_load(struct run_loader *loader, const struct run_hparams *hparams,
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
    run_token_shift_load(loader, n_embd, &layer->shift);
}

int run_channel_mix_apply(const struct run_channel_mix *layer, const struct run_pass *pass,
                          const float *x, float *out)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, n_ff = layer->key.weight.ne[1];
    float *difference = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *keys = run_scratch_take(pass->scratch, n * n_ff);

    if (!difference || !mixed || !keys)
        return -ENOMEM;
    run_token_shift(&layer->shift, x, n, difference);
    run_lerp(x, difference, layer->key_lerp, 0, n, n_embd, mixed);
    run_linear_apply(&layer->key, 0, mixed, n, keys);
    run_activate(RUN_RELU_SQUARED, NULL, keys, n * n_ff);
    if (!layer->receptance.weight.data) {
        run_linear_apply(&layer->value, 0, keys, n, out);
        return 0;
    }
    run_lerp(x, difference, layer->receptance_lerp, 0, n, n_embd, mixed);
    run_linear_apply(&layer->receptance, 0, mixed, n, out);
    run_linear_apply(&layer->value, 0, keys, n, mixed);
    run_activate_gated(RUN_SIGMOID, out, mixed, n * n_embd);
    return 0;
}
