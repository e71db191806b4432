#include "contrib/runner/engine/mix_recurrent.h"

static enum run_recurrence find_kind(const struct run_loader *loader,
                                     const struct run_hparams *hparams)
{
    if (hparams->rwkv_version > 0)
        return hparams->rwkv_version == 4   ? RUN_RECURRENCE_RWKV4
               : hparams->rwkv_version == 7 ? RUN_RECURRENCE_RWKV7
                                            : RUN_RECURRENCE_RWKV6;
    if (run_loader_has(loader, "shortconv.in_proj.weight"))
        return RUN_RECURRENCE_SHORT;
    if (run_loader_has(loader, "ssm_f_a.weight"))
        return RUN_RECURRENCE_KIMI_DELTA;
    if (run_loader_has(loader, "ssm_ba.weight") || run_loader_has(loader, "ssm_alpha.weight"))
        return RUN_RECURRENCE_DELTA_NET;
    if (run_loader_has(loader, "ssm_x.weight"))
        return RUN_RECURRENCE_MAMBA;
    if (run_loader_has(loader, "ssm_in.weight"))
        return RUN_RECURRENCE_MAMBA2;
    return RUN_RECURRENCE_NONE;
}

void run_recurrent_load(struct run_loader *loader, const struct run_hparams *hparams,
                        uint32_t index, struct run_recurrent_layer *layer)
{
    layer->kind = find_kind(loader, hparams);
    switch (layer->kind) {
    case RUN_RECURRENCE_MAMBA:
        run_mamba_load(loader, hparams, &layer->is.mamba);
        break;
    case RUN_RECURRENCE_MAMBA2:
        run_mamba2_load(loader, hparams, &layer->is.mamba2);
        break;
    case RUN_RECURRENCE_SHORT:
        run_short_load(loader, hparams, &layer->is.brief);
        break;
    case RUN_RECURRENCE_DELTA_NET:
        run_delta_net_load(loader, hparams, &layer->is.delta_net);
        break;
    case RUN_RECURRENCE_KIMI_DELTA:
        run_kimi_delta_load(loader, hparams, &layer->is.kimi_delta);
        break;
    case RUN_RECURRENCE_RWKV4:
        run_rwkv4_load(loader, hparams, &layer->is.rwkv4);
        break;
    case RUN_RECURRENCE_RWKV6:
        run_rwkv6_load(loader, hparams, &layer->is.rwkv6);
        break;
    case RUN_RECURRENCE_RWKV7:
        run_rwkv7_load(loader, hparams, index, &layer->is.rwkv7);
        break;
    case RUN_RECURRENCE_NONE:
        break;
    }
}

void run_recurrent_reset(struct run_recurrent_layer *layer)
{
    switch (layer->kind) {
    case RUN_RECURRENCE_MAMBA:
        run_mamba_reset(&layer->is.mamba);
        break;
    case RUN_RECURRENCE_MAMBA2:
        run_mamba2_reset(&layer->is.mamba2);
        break;
    case RUN_RECURRENCE_SHORT:
        run_short_reset(&layer->is.brief);
        break;
    case RUN_RECURRENCE_DELTA_NET:
        run_delta_net_reset(&layer->is.delta_net);
        break;
    case RUN_RECURRENCE_KIMI_DELTA:
        run_kimi_delta_reset(&layer->is.kimi_delta);
        break;
    case RUN_RECURRENCE_RWKV4:
        run_rwkv4_reset(&layer->is.rwkv4);
        break;
    case RUN_RECURRENCE_RWKV6:
        run_rwkv6_reset(&layer->is.rwkv6);
        break;
    case RUN_RECURRENCE_RWKV7:
        run_rwkv7_reset(&layer->is.rwkv7);
        break;
    case RUN_RECURRENCE_NONE:
        break;
    }
}

int run_recurrent_apply(struct run_recurrent_layer *layer, const struct run_pass *pass,
                        const float *x, float *out)
{
    switch (layer->kind) {
    case RUN_RECURRENCE_MAMBA:
        return run_mamba_apply(&layer->is.mamba, pass, x, out);
    case RUN_RECURRENCE_MAMBA2:
        return run_mamba2_apply(&layer->is.mamba2, pass, x, out);
    case RUN_RECURRENCE_SHORT:
        return run_short_apply(&layer->is.brief, pass, x, out);
    case RUN_RECURRENCE_DELTA_NET:
        return run_delta_net_apply(&layer->is.delta_net, pass, x, out);
    case RUN_RECURRENCE_KIMI_DELTA:
        return run_kimi_delta_apply(&layer->is.kimi_delta, pass, x, out);
    case RUN_RECURRENCE_RWKV4:
        return run_rwkv4_apply(&layer->is.rwkv4, pass, x, out);
    case RUN_RECURRENCE_RWKV6:
        return run_rwkv6_apply(&layer->is.rwkv6, pass, x, out);
    case RUN_RECURRENCE_RWKV7:
        return run_rwkv7_apply(&layer->is.rwkv7, pass, x, out);
    case RUN_RECURRENCE_NONE:
        break;
    }
    return 0;
}
