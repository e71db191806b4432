#include "contrib/runner/engine/layer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void load_norm(struct run_loader *loader, const struct run_hparams *hparams,
                      const char *name, struct run_norm_layer *norm)
{
    run_load_norm_if(loader, name, hparams->architecture->norms.kind, hparams->norm_epsilon,
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
    if (!layer->ffn_post_norm.is_there)
        load_norm(loader, hparams, "layer_output_norm", &layer->ffn_post_norm);
    if (hparams->has_swin_norm) {
        layer->mix_post_norm = layer->mix_norm;
        layer->ffn_post_norm = layer->ffn_norm;
        layer->mix_norm = layer->ffn_norm = (struct run_norm_layer){0};
    }
    /* After attention and before the feed-forward: some files call that the former. */
    if (!layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there) {
        layer->ffn_norm = layer->mix_post_norm;
        layer->mix_post_norm = (struct run_norm_layer){0};
    }
    if (hparams->architecture->norms.plain & RUN_PLAIN_LAYER_NORMS)
        layer->mix_norm.is_there = layer->ffn_norm.is_there = true;
}

static void load_mixer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                       bool is_cache_f16, struct run_layer *layer)
{
    const struct run_layer_shape *shape = &hparams->layers[index];

    run_recurrent_load(loader, hparams, index, &layer->recurrent);
    if (layer->recurrent.kind != RUN_RECURRENCE_NONE)
        layer->mixer = RUN_MIX_RECURRENT;
    if (layer->mixer == RUN_MIX_RECURRENT &&
        (shape->n_head == 0 || !run_loader_has(loader, "attn_output.weight")))
        return;
    if (shape->n_head == 0) {
        run_load_linear_if(loader, "attn_output", hparams->n_embd, hparams->n_embd, &layer->linear);
        layer->mixer = layer->linear.weight.data ? RUN_MIX_LINEAR : RUN_MIX_NOTHING;
    } else if (layer->mixer == RUN_MIX_RECURRENT) {
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

static void load_laurel(struct run_loader *loader, const struct run_hparams *hparams,
                        struct run_layer *layer)
{
    const uint64_t rank = run_load_n_rows(loader, "laurel_l.weight");

    if (rank == 0)
        return;
    run_load_linear(loader, "laurel_l", hparams->n_embd, rank, &layer->laurel_l);
    run_load_linear(loader, "laurel_r", rank, hparams->n_embd, &layer->laurel_r);
    load_norm(loader, hparams, "laurel_post_norm", &layer->laurel_norm);
}

void run_layer_load(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                    bool is_cache_f16, struct run_layer *layer)
{
    const struct run_layer_shape *shape = &hparams->layers[index];

    snprintf(loader->prefix, sizeof loader->prefix, "blk.%u.", index % hparams->n_stored);
    load_norms(loader, hparams, layer);
    load_mixer(loader, hparams, index, is_cache_f16, layer);
    load_laurel(loader, hparams, layer);
    run_feed_forward_load(loader, hparams, shape, &layer->feed_forward);
    run_altup_load(loader, hparams, &layer->altup);
    run_per_layer_load(loader, hparams, index, &layer->per_layer);
    layer->scale = run_load_vector_if(loader, "layer_output_scale.weight", 1);
    /* Without a norm before it (and behind it) the feed-forward has the same input as attention. */
    layer->is_parallel =
        hparams->is_parallel || (layer->feed_forward.is_there && layer->mix_norm.is_there &&
                                 !layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there);
    layer->is_halved =
        hparams->rescaling_period > 0 && (index + 1) % hparams->rescaling_period == 0;
    if (loader->code == 0 && layer->mixer == RUN_MIX_NOTHING && !layer->feed_forward.is_there &&
        (shape->n_head > 0 || shape->n_ff > 0))
        run_loader_refuse(loader, "tensors: layer %u has neither attention nor feed-forward",
                          index);
}

void run_layer_share(struct run_loader *loader, struct run_layer *layer,
                     const struct run_layer *source)
{
    if (layer->mixer == RUN_MIX_ATTENTION && source->mixer == RUN_MIX_ATTENTION)
        run_attention_share(&layer->attention, &source->attention);
    else
        run_loader_refuse(loader, "metadata.json: attention.shared_kv_layers counts layers without "
                                  "attention");
}

void run_layer_follow(struct run_loader *loader, struct run_layer *layer,
                      const struct run_layer *before)
{
    run_latent_follow(loader, &layer->latent, &before->latent);
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
    case RUN_MIX_LINEAR:
        run_linear_apply(&layer->linear, 0, x, pass->n, out);
        break;
    case RUN_MIX_NOTHING:
        break;
    }
    return 0;
}

/* x = the mean, by length, of x and what goes beside mixing from the normed input. */
static int add_laurel(const struct run_layer *layer, const struct run_pass *pass,
                      const float *normed, float *x)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *narrow, *wide;

    if (!layer->laurel_l.weight.data)
        return 0;
    narrow = run_scratch_take(pass->scratch, n * layer->laurel_l.weight.ne[1]);
    wide = run_scratch_take(pass->scratch, n * n_embd);
    if (!narrow || !wide)
        return -ENOMEM;
    run_linear_apply(&layer->laurel_l, 0, normed, n, narrow);
    run_linear_apply(&layer->laurel_r, 0, narrow, n, wide);
    run_norm_apply(&layer->laurel_norm, wide, n, n_embd, wide);
    for (size_t i = 0; i < n * n_embd; i++)
        x[i] = (x[i] + (normed[i] + wide[i])) * 0.70710678118654752440f;
    return 0;
}

/* A copy of what the layer gets, where the row's experts start from that; NULL without memory. */
static const float *keep_input(const struct run_pass *pass, const float *x)
{
    const struct run_architecture *row = pass->hparams->architecture;
    const size_t size = pass->n * pass->hparams->n_embd;
    float *copy;

    if (row->experts.input != RUN_INPUT_LAYER && row->experts.router_input != RUN_INPUT_LAYER)
        return x;
    copy = run_scratch_take(pass->scratch, size);
    if (copy)
        memcpy(copy, x, size * sizeof *copy);
    return copy;
}

static int apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const size_t n_embd = pass->hparams->n_embd, n = pass->n;
    const float scale = pass->hparams->residual_scale;
    const float *input = keep_input(pass, x);
    float *normed = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *result = run_scratch_take(pass->scratch, n * n_embd);
    int code = 0;

    if (!input || !normed || !mixed || !result)
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
        code = add_laurel(layer, pass, normed, x);
        if (code < 0)
            return code;
    }
    if (layer->feed_forward.is_there) {
        const struct run_feed_forward_input in = {normed, x, input};

        run_norm_apply(layer->is_parallel && !layer->ffn_norm.is_there ? &layer->mix_norm
                                                                       : &layer->ffn_norm,
                       x, n, n_embd, normed);
        code = run_feed_forward_apply(&layer->feed_forward, pass, &in, result);
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

/* Adds what the layer's own embeddings give to each of n_streams rows of x. */
static int add_per_layer(const struct run_layer *layer, const struct run_pass *pass,
                         const float *opening, size_t n_streams, float *x)
{
    const size_t size = pass->n * pass->hparams->n_embd;
    float *difference;
    int code;

    if (!layer->per_layer.gate.weight.data)
        return 0;
    difference = run_scratch_take(pass->scratch, size);
    if (!difference)
        return -ENOMEM;
    code = run_per_layer_apply(&layer->per_layer, pass, opening, difference);
    for (size_t i = 0; i < n_streams && code == 0; i++)
        add(x + i * size, difference, size, 1);
    return code;
}

/* The layer works on the first stream; its own embeddings go to the others. */
static int apply_to_streams(struct run_layer *layer, const struct run_pass *pass, float *streams)
{
    const size_t n_embd = pass->hparams->n_embd, size = pass->n * n_embd;
    const size_t n_streams = pass->hparams->n_streams;
    float *predictions = run_scratch_take(pass->scratch, n_streams * size);
    float *active = run_scratch_take(pass->scratch, size);
    int code = predictions && active ? run_altup_predict(&layer->altup, pass, streams, predictions)
                                     : -ENOMEM;

    if (code < 0)
        return code;
    memcpy(active, predictions, size * sizeof *active);
    code = apply(layer, pass, active);
    if (code == 0)
        code = run_altup_correct(&layer->altup, pass, predictions, active, streams);
    if (code < 0)
        return code;
    for (size_t i = 0; i < size; i++)
        active[i] = streams[i] * layer->altup.scale[i % n_embd];
    return add_per_layer(layer, pass, active, n_streams - 1, streams + size);
}

static void apply_scale(const struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const size_t size = pass->n * pass->hparams->n_embd;

    if (!layer->scale)
        return;
    if (pass->hparams->architecture->layers.output_scale == RUN_LAYER_SCALES_EMBEDDINGS)
        add(x, pass->embeddings, size, *layer->scale);
    else
        for (size_t i = 0; i < size; i++)
            x[i] *= *layer->scale;
}

int run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    int code;

    if (pass->hparams->n_streams > 1) {
        code = apply_to_streams(layer, pass, x);
    } else {
        code = apply(layer, pass, x);
        if (code == 0)
            code = add_per_layer(layer, pass, x, 1, x);
    }
    apply_scale(layer, pass, x);
    run_scratch_release(pass->scratch, mark);
    return code;
}
