/* The time mixing of RWKV 4 around compute/wkv.h. */
#include "contrib/runner/compute/wkv.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/rwkv_parts.h"

struct rwkv4_layer {
    struct run_token_shift shift;
    const float *key_lerp, *value_lerp, *receptance_lerp; /* [n_embd] */
    struct run_linear key, value, receptance, output;
    const float *decay, *bonus; /* [n_embd] */
    struct run_wkv4 wkv;
};

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct rwkv4_layer *layer = mixer;
    const uint64_t n_embd = hparams->n_embd;

    layer->key_lerp =
        run_load_rwkv_lerp(loader, "time_mix_lerp_k.weight", "att.time_mix_k", n_embd);
    layer->value_lerp =
        run_load_rwkv_lerp(loader, "time_mix_lerp_v.weight", "att.time_mix_v", n_embd);
    layer->receptance_lerp =
        run_load_rwkv_lerp(loader, "time_mix_lerp_r.weight", "att.time_mix_r", n_embd);
    run_load_linear(loader, "time_mix_key", n_embd, n_embd, &layer->key);
    run_load_linear(loader, "time_mix_value", n_embd, n_embd, &layer->value);
    run_load_linear(loader, "time_mix_receptance", n_embd, n_embd, &layer->receptance);
    run_load_linear(loader, "time_mix_output", n_embd, n_embd, &layer->output);
    layer->decay = run_load_rwkv(loader, "time_mix_decay.weight", "att.time_decay", n_embd);
    layer->bonus = run_load_rwkv(loader, "time_mix_first.weight", "att.time_first", n_embd);
    run_token_shift_load(loader, n_embd, &layer->shift);
    layer->wkv = (struct run_wkv4){
        .width = n_embd,
        .sums = run_load_state(loader, 2, n_embd, 0),
        .exponents = run_load_state(loader, 1, n_embd, RUN_WKV4_LEAST_EXPONENT),
    };
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    const struct rwkv4_layer *layer = mixer;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *difference = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *keys = run_scratch_take(pass->scratch, n * n_embd);
    float *values = run_scratch_take(pass->scratch, n * n_embd);
    float *gate = run_scratch_take(pass->scratch, n * n_embd);
    float *found = mixed;

    run_token_shift(&layer->shift, x, n, difference);
    run_lerp(x, difference, layer->key_lerp, 0, n, n_embd, mixed);
    run_linear_apply(&layer->key, 0, mixed, n, keys);
    run_lerp(x, difference, layer->value_lerp, 0, n, n_embd, mixed);
    run_linear_apply(&layer->value, 0, mixed, n, values);
    run_lerp(x, difference, layer->receptance_lerp, 0, n, n_embd, mixed);
    run_linear_apply(&layer->receptance, 0, mixed, n, gate);
    run_wkv4(&layer->wkv, layer->decay, layer->bonus, keys, values, n, found);
    run_activate_gated(RUN_SIGMOID, gate, found, n * n_embd);
    run_linear_apply(&layer->output, 0, gate, n, out);
}

const struct run_mixer_ops run_rwkv4_mixer = {
    .n_bytes = sizeof(struct rwkv4_layer),
    .load = load,
    .apply = apply,
};
