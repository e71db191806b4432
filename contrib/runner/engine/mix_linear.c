/* One product instead of attention: layers of pruned models (DeciLM, Nemotron). */
#include "contrib/runner/engine/mixer.h"

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const uint64_t n_embd = place->hparams->n_embd;

    run_load_linear(loader, "attn_output", n_embd, n_embd, mixer);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    run_linear_apply(mixer, 0, x, pass->n, out);
}

const struct run_mixer_ops run_linear_mixer = {
    .n_bytes = sizeof(struct run_linear),
    .load = load,
    .apply = apply,
};
