#include "contrib/runner/engine/layer.h"

#include <errno.h>
#include <stdio.h>

static void load_norm(struct run_loader *loader, const struct run_hparams *hparams,
                      const char *name, struct run_norm_layer *norm)
{
    run_load_norm_if(loader, name, hparams->architecture->norm, hparams->norm_epsilon,
                     hparams->n_embd, norm);
}

static void load_norms(struct run_loader *loader, const struct run_hparams *hparams,
                       struct run_layer *layer)
{
    load_norm(loader, hparams, "attn_norm", &layer->mix_norm);
    load_norm(loader, hparams, "attn_norm_2", &layer->mix_norm_2);
    load_norm(loader, hparams, "post_attention_norm", &layer->mix_post_norm);
    if (!layer->mix_post_norm.is_there)
        load_norm(loader, hparams, "attn_output_norm", &layer->mix_post_norm);
    load_norm(loader, hparams, "ffn_norm", &layer->ffn_norm);
    load_norm(loader, hparams, "post_ffw_norm", &layer->ffn_post_norm);
    /* After attention and before the feed-forward: some files call that the former. */
    if (!layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there) {
        layer->ffn_norm = layer->mix_post_norm;
        layer->mix_post_norm = (struct run_norm_layer){0};
    }
    if (hparams->architecture->norms_have_no_weights)
        layer->mix_norm.is_there = layer->ffn_norm.is_there = true;
}

static void load_rwkv(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                      struct run_layer *layer)
{
    const uint32_t period = hparams->rescaling_period;

    layer->is_halved = period > 0 && (index + 1) % period == 0;
    if (hparams->rwkv_version == 7) {
        layer->mixer = RUN_MIX_RWKV7;
        run_rwkv7_load(loader, hparams, index, &layer->rwkv7);
    } else if (hparams->rwkv_version == 4) {
        layer->mixer = RUN_MIX_RWKV4;
        run_rwkv4_load(loader, hparams, &layer->rwkv4);
    } else {
        layer->mixer = RUN_MIX_RWKV6;
        run_rwkv6_load(loader, hparams, &layer->rwkv6);
    }
    run_channel_mix_load(loader, hparams, &layer->channel_mix);
    if (layer->channel_mix.is_there) {
        layer->ffn_norm = layer->mix_norm_2;
        layer->mix_norm_2 = (struct run_norm_layer){0};
    }
}

static void load_mixer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                       bool is_cache_f16, struct run_layer *layer)
{
    const struct run_layer_shape *shape = &hparams->layers[index];

    if (hparams->rwkv_version > 0) {
        load_rwkv(loader, hparams, index, layer);
        return;
    }
    if (shape->n_head == 0)
        return;
    if (run_loader_has(loader, "attn_kv_a_mqa.weight")) {
        layer->mixer = RUN_MIX_LATENT;
        run_latent_load(loader, hparams, shape, is_cache_f16, &layer->latent);
    } else {
        layer->mixer = RUN_MIX_ATTENTION;
        run_attention_load(loader, hparams, shape, is_cache_f16, &layer->attention);
    }
}

void run_layer_load(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                    bool is_cache_f16, struct run_layer *layer)
{
    snprintf(loader->prefix, sizeof loader->prefix, "blk.%u.", index);
    load_norms(loader, hparams, layer);
    load_mixer(loader, hparams, index, is_cache_f16, layer);
    run_feed_forward_load(loader, hparams, &hparams->layers[index], &layer->feed_forward);
    /* Without a norm before it (and behind it) the feed-forward has the same input as attention. */
    layer->is_parallel =
        hparams->is_parallel || (layer->feed_forward.is_there && layer->mix_norm.is_there &&
                                 !layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there);
    if (loader->code == 0 && layer->mixer == RUN_MIX_NOTHING && !layer->feed_forward.is_there)
        run_loader_refuse(loader, "tensors: layer %u has neither attention nor feed-forward",
                          index);
}

void run_layer_free(struct run_layer *layer)
{
    run_attention_free(&layer->attention);
    run_latent_free(&layer->latent);
}

void run_layer_reset(struct run_layer *layer)
{
    switch (layer->mixer) {
    case RUN_MIX_RWKV4:
        run_rwkv4_reset(&layer->rwkv4);
        break;
    case RUN_MIX_RWKV6:
        run_rwkv6_reset(&layer->rwkv6);
        break;
    case RUN_MIX_RWKV7:
        run_rwkv7_reset(&layer->rwkv7);
        break;
    case RUN_MIX_ATTENTION:
    case RUN_MIX_LATENT:
    case RUN_MIX_NOTHING:
        break;
    }
    if (layer->channel_mix.is_there)
        run_channel_mix_reset(&layer->channel_mix);
}

static int mix(struct run_layer *layer, const struct run_pass *pass, const float *x, float *out)
{
    switch (layer->mixer) {
    case RUN_MIX_ATTENTION:
        return run_attention_apply(&layer->attention, pass, x, out);
    case RUN_MIX_LATENT:
        return run_latent_apply(&layer->latent, pass, x, out);
    case RUN_MIX_RWKV4:
        return run_rwkv4_apply(&layer->rwkv4, pass, x, out);
    case RUN_MIX_RWKV6:
        return run_rwkv6_apply(&layer->rwkv6, pass, x, out);
    case RUN_MIX_RWKV7:
        return run_rwkv7_apply(&layer->rwkv7, pass, x, out);
    case RUN_MIX_NOTHING:
        break;
    }
    return 0;
}

static bool has_feed_forward(const struct run_layer *layer)
{
    return layer->feed_forward.is_there || layer->channel_mix.is_there;
}

static int feed_forward(const struct run_layer *layer, const struct run_pass *pass, const float *x,
                        float *out)
{
    return layer->channel_mix.is_there ? run_channel_mix_apply(&layer->channel_mix, pass, x, out)
                                       : run_feed_forward_apply(&layer->feed_forward, pass, x, out);
}

static void add(float *x, const float *difference, size_t n, float scale)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        x[i] += difference[i] * scale;
}

static int apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const size_t n_embd = pass->hparams->n_embd, n = pass->n;
    const float scale = pass->hparams->residual_scale;
    float *normed = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *result = run_scratch_take(pass->scratch, n * n_embd);
    int code = 0;

    if (!normed || !mixed || !result)
        return -ENOMEM;
    if (layer->mixer != RUN_MIX_NOTHING) {
        run_norm_apply(layer->mix_norm_2.is_there ? &layer->mix_norm_2 : &layer->mix_norm, x, n,
                       n_embd, normed);
        code = mix(layer, pass, normed, mixed);
        if (code < 0)
            return code;
        run_norm_apply(&layer->mix_post_norm, mixed, n, n_embd, mixed);
        if (!layer->is_parallel)
            add(x, mixed, n * n_embd, scale);
    }
    if (has_feed_forward(layer)) {
        run_norm_apply(layer->is_parallel && !layer->ffn_norm.is_there ? &layer->mix_norm
                                                                       : &layer->ffn_norm,
                       x, n, n_embd, normed);
        code = feed_forward(layer, pass, normed, result);
        if (code < 0)
            return code;
        run_norm_apply(&layer->ffn_post_norm, result, n, n_embd, result);
        add(x, result, n * n_embd, scale);
    }
    if (layer->is_parallel && layer->mixer != RUN_MIX_NOTHING)
        add(x, mixed, n * n_embd, scale);
    for (size_t i = 0; i < (layer->is_halved ? n * n_embd : 0); i++)
        x[i] *= 0.5f;
    return 0;
}

int run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const int code = apply(layer, pass, x);

    run_scratch_release(pass->scratch, mark);
    return code;
}
