#include "contrib/runner/engine/mixer.h"

#include <errno.h>

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
