#include "contrib/runner/engine/mixer_table.h"

#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/mix_delta_net.h"
#include "contrib/runner/engine/mix_kimi_delta.h"
#include "contrib/runner/engine/mix_latent.h"
#include "contrib/runner/engine/mix_mamba.h"
#include "contrib/runner/engine/mix_mamba2.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The first mixer of each table that is wanted is used. */
static const struct run_mixer_ops *const recurrent_table[] = {
    &run_rwkv4_mixer,      &run_rwkv6_mixer,     &run_rwkv7_mixer, &run_short_mixer,
    &run_kimi_delta_mixer, &run_delta_net_mixer, &run_mamba_mixer, &run_mamba2_mixer,
};
static const struct run_mixer_ops *const attention_table[] = {
    &run_latent_mixer,
    &run_attention_mixer,
    &run_linear_mixer,
};

static const struct run_mixer_ops *choose(const struct run_mixer_ops *const table[], size_t n,
                                          const struct run_loader *loader,
                                          const struct run_mixer_place *place)
{
    for (size_t i = 0; i < n; i++)
        if (table[i]->is_wanted(loader, place))
            return table[i];
    return NULL;
}

static void load_one(struct run_loader *loader, const struct run_mixer_place *place,
                     const struct run_mixer_ops *ops, struct run_mixers *mixers)
{
    void *state = run_arena_alloc(loader->arena, 1, ops->n_bytes);

    if (!state) {
        if (loader->code == 0)
            loader->code = run_fail_memory(loader->failure);
        return;
    }
    mixers->list[mixers->n++] = (struct run_mixer){ops, state};
    ops->load(loader, place, state);
}

void run_mixers_load(struct run_loader *loader, const struct run_mixer_place *place,
                     struct run_mixers *mixers)
{
    const bool has_heads = place->hparams->layers[place->index].n_head > 0;
    const struct run_mixer_ops *recurrent =
        choose(recurrent_table, COUNT(recurrent_table), loader, place);
    const struct run_mixer_ops *attention = NULL;

    /*
     * Attention runs beside a recurrent mixer only if the layer has heads and their output product.
     */
    if (!recurrent || (has_heads && run_loader_has(loader, "attn_output.weight")))
        attention = choose(attention_table, COUNT(attention_table), loader, place);
    if (attention)
        load_one(loader, place, attention, mixers);
    if (recurrent)
        load_one(loader, place, recurrent, mixers);
}
