#include "contrib/runner/engine/mixer.h"

/* One product instead of attention: layers of pruned models (DeciLM, Nemotron). */
static void load_linear(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const uint64_t n_embd = place->hparams->n_embd;

    run_load_linear(loader, "attn_output", n_embd, n_embd, mixer);
}

static void apply_linear(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    run_linear_apply(mixer, 0, x, pass->n, out);
}

static const struct run_mixer_ops linear_mixer = {
    .n_bytes = sizeof(struct run_linear),
    .load = load_linear,
    .apply = apply_linear,
};

/* The first row whose tensor the layer has is used. */
static const struct {
    const struct run_mixer_ops *ops;
    const char *tensor;
} recurrent_table[] = {
    {&run_short_mixer, "shortconv.in_proj.weight"},
    {&run_delta_net_mixer, "ssm_f_a.weight"},
    {&run_delta_net_mixer, "ssm_ba.weight"},
    {&run_delta_net_mixer, "ssm_alpha.weight"},
    {&run_mamba_mixer, "ssm_x.weight"},
    {&run_mamba_mixer, "ssm_in.weight"},
};

static const struct run_mixer_ops *choose_recurrent(const struct run_loader *loader,
                                                    const struct run_hparams *hparams)
{
    if (hparams->rwkv_version > 0)
        return hparams->rwkv_version == 7 ? &run_rwkv7_mixer : &run_rwkv_mixer;
    for (size_t i = 0; i < sizeof recurrent_table / sizeof *recurrent_table; i++)
        if (run_loader_has(loader, recurrent_table[i].tensor))
            return recurrent_table[i].ops;
    return NULL;
}

static const struct run_mixer_ops *choose_attention(const struct run_loader *loader,
                                                    const struct run_hparams *hparams,
                                                    bool has_heads)
{
    if (has_heads)
        return run_loader_has(loader, "attn_kv_a_mqa.weight") ? &run_latent_mixer
                                                              : &run_attention_mixer;
    return hparams->architecture->attention & RUN_PRUNED_LAYERS &&
                   run_loader_has(loader, "attn_output.weight")
               ? &linear_mixer
               : NULL;
}

static void load_one(struct run_loader *loader, const struct run_mixer_place *place,
                     const struct run_mixer_ops *ops, struct run_mixers *mixers)
{
    void *state = run_load_alloc(loader, 1, ops->n_bytes);

    if (!state)
        return;
    mixers->list[mixers->n++] = (struct run_mixer){ops, state};
    loader->can_rewind = ops->rewind != NULL;
    ops->load(loader, place, state);
    loader->can_rewind = false;
}

void run_mixers_load(struct run_loader *loader, const struct run_mixer_place *place,
                     struct run_mixers *mixers)
{
    const bool has_heads = place->hparams->layers[place->index].n_head > 0;
    const struct run_mixer_ops *recurrent = choose_recurrent(loader, place->hparams);
    const struct run_mixer_ops *attention = NULL;

    /* Attention runs beside a recurrent mixer only if the layer has heads and attn_output. */
    if (!recurrent || (has_heads && run_loader_has(loader, "attn_output.weight")))
        attention = choose_attention(loader, place->hparams, has_heads);
    if (attention)
        load_one(loader, place, attention, mixers);
    if (recurrent)
        load_one(loader, place, recurrent, mixers);
}

void *run_mixers_find(const struct run_mixers *mixers, const struct run_mixer_ops *ops)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops == ops)
            return mixers->list[i].state;
    return NULL;
}

void run_mixers_apply(const struct run_mixers *mixers, const struct run_pass *pass, const float *x,
                      float *out)
{
    const size_t size = pass->n * pass->hparams->n_embd;

    for (size_t i = 0; i < mixers->n; i++) {
        float *to = i == 0 ? out : run_scratch_take(pass->scratch, size);

        mixers->list[i].ops->apply(mixers->list[i].state, pass, x, to);
        for (size_t j = 0; i > 0 && j < size; j++)
            out[j] += to[j];
    }
}

void run_mixers_rewind(const struct run_mixers *mixers, struct run_scratch *scratch, size_t n)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops->rewind)
            mixers->list[i].ops->rewind(mixers->list[i].state, scratch, n);
}
