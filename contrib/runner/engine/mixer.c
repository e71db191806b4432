#include "contrib/runner/engine/mixer.h"

#include "contrib/runner/engine/mix_attention.h"
#include "contrib/runner/engine/mix_delta_net.h"
#include "contrib/runner/engine/mix_kimi_delta.h"
#include "contrib/runner/engine/mix_latent.h"
#include "contrib/runner/engine/mix_linear.h"
#include "contrib/runner/engine/mix_mamba.h"
#include "contrib/runner/engine/mix_mamba2.h"
#include "contrib/runner/engine/mix_rwkv4.h"
#include "contrib/runner/engine/mix_rwkv6.h"
#include "contrib/runner/engine/mix_rwkv7.h"
#include "contrib/runner/engine/mix_short_convolution.h"

#include <errno.h>

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

void *run_mixers_find(const struct run_mixers *mixers, const struct run_mixer_ops *ops)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops == ops)
            return mixers->list[i].state;
    return NULL;
}

int run_mixers_apply(const struct run_mixers *mixers, const struct run_pass *pass, const float *x,
                     float *out)
{
    const size_t size = pass->n * pass->hparams->n_embd;

    for (size_t i = 0; i < mixers->n; i++) {
        const struct run_mixer *mixer = &mixers->list[i];
        float *to = i == 0 ? out : run_scratch_take(pass->scratch, size);
        const int code = to ? mixer->ops->apply(mixer->state, pass, x, to) : -ENOMEM;

        if (code < 0)
            return code;
        for (size_t j = 0; i > 0 && j < size; j++)
            out[j] += to[j];
    }
    return 0;
}

void run_mixers_reset(const struct run_mixers *mixers)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops->reset)
            mixers->list[i].ops->reset(mixers->list[i].state);
}

bool run_mixers_are_recurrent(const struct run_mixers *mixers)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops->reset)
            return true;
    return false;
}

bool run_mixers_can_rewind(const struct run_mixers *mixers)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops->reset && !mixers->list[i].ops->rewind)
            return false;
    return true;
}

int run_mixers_rewind(const struct run_mixers *mixers, struct run_scratch *scratch, size_t n)
{
    int code = 0;

    for (size_t i = 0; i < mixers->n && code == 0; i++)
        if (mixers->list[i].ops->rewind)
            code = mixers->list[i].ops->rewind(mixers->list[i].state, scratch, n);
    return code;
}

void run_mixers_free(const struct run_mixers *mixers)
{
    for (size_t i = 0; i < mixers->n; i++)
        if (mixers->list[i].ops->free)
            mixers->list[i].ops->free(mixers->list[i].state);
}
