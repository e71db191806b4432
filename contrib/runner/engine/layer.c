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
    load_norm(loader, hparams, "post_attention_norm", &layer->mix_post_norm);
    if (!layer->mix_post_norm.is_there)
        load_norm(loader, hparams, "attn_output_norm", &layer->mix_post_norm);
    load_norm(loader, hparams, "ffn_norm", &layer->ffn_norm);
    if (hparams->rwkv_version > 0 && !layer->ffn_norm.is_there)
        load_norm(loader, hparams, "attn_norm_2", &layer->ffn_norm);
    else
        load_norm(loader, hparams, "attn_norm_2", &layer->mix_norm_2);
    load_norm(loader, hparams, "post_ffw_norm", &layer->ffn_post_norm);
    /* After attention and before the feed-forward: some files call that the former. */
    if (!layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there) {
        layer->ffn_norm = layer->mix_post_norm;
        layer->mix_post_norm = (struct run_norm_layer){0};
    }
    if (hparams->architecture->norms_have_no_weights)
        layer->mix_norm.is_there = layer->ffn_norm.is_there = true;
}

static void load_mixer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                       bool is_cache_f16, struct run_layer *layer)
{
    const struct run_layer_shape *shape = &hparams->layers[index];

    run_recurrent_load(loader, hparams, index, &layer->recurrent);
    if (layer->recurrent.kind != RUN_RECURRENCE_NONE)
        layer->mixer = RUN_MIX_RECURRENT;
    if (shape->n_head == 0 || (layer->recurrent.kind != RUN_RECURRENCE_NONE &&
                               !run_loader_has(loader, "attn_output.weight")))
        return;
    if (layer->mixer == RUN_MIX_RECURRENT) {
        layer->mixer = RUN_MIX_BOTH;
        run_attention_load(loader, hparams, shape, is_cache_f16, &layer->attention);
    } else if (run_loader_has(loader, "attn_kv_a_mqa.weight")) {
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
    layer->is_halved =
        hparams->rescaling_period > 0 && (index + 1) % hparams->rescaling_period == 0;
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
    run_recurrent_reset(&layer->recurrent);
    run_feed_forward_reset(&layer->feed_forward);
}

static void add(float *x, const float *difference, size_t n, float scale)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        x[i] += difference[i] * scale;
}

static int mix_both(struct run_layer *layer, const struct run_pass *pass, const float *x,
                    float *out)
{
    const size_t n = pass->n * pass->hparams->n_embd;
    float *beside = run_scratch_take(pass->scratch, n);

    if (!beside || run_attention_apply(&layer->attention, pass, x, out) < 0 ||
        run_recurrent_apply(&layer->recurrent, pass, x, beside) < 0)
        return -ENOMEM;
    add(out, beside, n, 1);
    return 0;
}

static int mix(struct run_layer *layer, const struct run_pass *pass, const float *x, float *out)
{
    switch (layer->mixer) {
    case RUN_MIX_ATTENTION:
        return run_attention_apply(&layer->attention, pass, x, out);
    case RUN_MIX_LATENT:
        return run_latent_apply(&layer->latent, pass, x, out);
    case RUN_MIX_RECURRENT:
        return run_recurrent_apply(&layer->recurrent, pass, x, out);
    case RUN_MIX_BOTH:
        return mix_both(layer, pass, x, out);
    case RUN_MIX_NOTHING:
        break;
    }
    return 0;
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
    if (layer->feed_forward.is_there) {
        run_norm_apply(layer->is_parallel && !layer->ffn_norm.is_there ? &layer->mix_norm
                                                                       : &layer->ffn_norm,
                       x, n, n_embd, normed);
        code = run_feed_forward_apply(&layer->feed_forward, pass, normed, result);
        if (code < 0)
            return code;
        run_norm_apply(&layer->ffn_post_norm, result, n, n_embd, result);
        add(x, result, n * n_embd, scale);
    }
    if (layer->is_parallel && layer->mixer != RUN_MIX_NOTHING)
        add(x, mixed, n * n_embd, scale);
    if (layer->is_halved)
        for (size_t i = 0; i < n * n_embd; i++)
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
