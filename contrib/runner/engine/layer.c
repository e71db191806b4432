#include "contrib/runner/engine/layer.h"

#include <stdio.h>
#include <string.h>

static void load_norms(struct run_loader *loader, const struct run_hparams *hparams,
                       struct run_layer *layer)
{
    run_load_stream_norm_if(loader, hparams, "attn_norm", &layer->mix_norm);
    run_load_stream_norm_if(loader, hparams, "post_attention_norm", &layer->mix_post_norm);
    if (!layer->mix_post_norm.is_there)
        run_load_stream_norm_if(loader, hparams, "attn_output_norm", &layer->mix_post_norm);
    run_load_stream_norm_if(loader, hparams, "ffn_norm", &layer->ffn_norm);
    if (hparams->rwkv_version > 0 && !layer->ffn_norm.is_there)
        run_load_stream_norm_if(loader, hparams, "attn_norm_2", &layer->ffn_norm);
    else
        run_load_stream_norm_if(loader, hparams, "attn_norm_2", &layer->mix_norm_2);
    run_load_stream_norm_if(loader, hparams, "post_ffw_norm", &layer->ffn_post_norm);
    if (!layer->ffn_post_norm.is_there)
        run_load_stream_norm_if(loader, hparams, "layer_output_norm", &layer->ffn_post_norm);
    if (hparams->has_swin_norm) {
        layer->mix_post_norm = layer->mix_norm;
        layer->ffn_post_norm = layer->ffn_norm;
        layer->mix_norm = layer->ffn_norm = (struct run_norm_layer){0};
    }
    /* Some files with one norm between attention and feed-forward call it post_attention_norm. */
    if (!layer->ffn_norm.is_there && !layer->ffn_post_norm.is_there) {
        layer->ffn_norm = layer->mix_post_norm;
        layer->mix_post_norm = (struct run_norm_layer){0};
    }
    if (hparams->architecture->layers & RUN_PLAIN_LAYER_NORMS)
        layer->mix_norm.is_there = layer->ffn_norm.is_there = true;
}

static void load_laurel(struct run_loader *loader, const struct run_hparams *hparams,
                        struct run_layer *layer)
{
    const uint64_t rank = run_load_n_rows(loader, "laurel_l.weight");

    if (rank == 0)
        return;
    run_load_linear(loader, "laurel_l", hparams->n_embd, rank, &layer->laurel_l);
    run_load_linear(loader, "laurel_r", rank, hparams->n_embd, &layer->laurel_r);
    run_load_stream_norm_if(loader, hparams, "laurel_post_norm", &layer->laurel_norm);
}

/* In parallel layers, the feed-forward takes the layer's input, not the mixers' output. */
static bool is_parallel(const struct run_hparams *hparams, const struct run_layer *layer)
{
    return hparams->is_parallel || (hparams->architecture->layers & RUN_PARALLEL_WITHOUT_FFN_NORM &&
                                    !layer->ffn_norm.is_there);
}

void run_layer_load(struct run_loader *loader, const struct run_mixer_place *place,
                    struct run_mixers *mixers, struct run_layer *layer)
{
    const struct run_hparams *hparams = place->hparams;
    const uint32_t index = place->index;

    snprintf(loader->prefix, sizeof loader->prefix, "blk.%u.", index % hparams->n_stored);
    layer->mixers = mixers;
    load_norms(loader, hparams, layer);
    run_mixers_load(loader, place, mixers);
    load_laurel(loader, hparams, layer);
    run_feed_forward_load(loader, hparams, &hparams->layers[index], &layer->feed_forward);
    run_altup_load(loader, hparams, &layer->altup);
    run_per_layer_load(loader, hparams, index, &layer->per_layer);
    layer->scale = run_load_vector_if(loader, "layer_output_scale.weight", 1);
    if (hparams->model->blocks == GGUF_ONE_BLOCK && mixers->n == 0)
        layer->ffn_norm = layer->mix_norm;
    layer->is_parallel = is_parallel(hparams, layer);
    layer->is_halved =
        hparams->rescaling_period > 0 && (index + 1) % hparams->rescaling_period == 0;
}

static void add(float *x, const float *difference, size_t n, float scale)
{
#pragma omp simd
    for (size_t i = 0; i < n; i++)
        x[i] += difference[i] * scale;
}

/* x = (x + LAuReL(normed)) / √2. */
static void add_laurel(const struct run_layer *layer, const struct run_pass *pass,
                       const float *normed, float *x)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *narrow, *wide;

    if (!layer->laurel_l.weight.data)
        return;
    narrow = run_scratch_take(pass->scratch, n * layer->laurel_l.weight.ne[1]);
    wide = run_scratch_take(pass->scratch, n * n_embd);
    run_linear_apply(&layer->laurel_l, 0, normed, n, narrow);
    run_linear_apply(&layer->laurel_r, 0, narrow, n, wide);
    run_norm_apply(&layer->laurel_norm, wide, n, n_embd, wide);
    for (size_t i = 0; i < n * n_embd; i++)
        x[i] = (x[i] + (normed[i] + wide[i])) * 0.70710678118654752440f;
}

/* Copy the layer's input if experts or their router use it. */
static const float *keep_input(const struct run_pass *pass, const float *x)
{
    const struct run_architecture *row = pass->hparams->architecture;
    const size_t size = pass->n * pass->hparams->n_embd;
    float *copy;

    if (!(row->layers & (RUN_EXPERTS_TAKE_INPUT | RUN_ROUTER_TAKES_INPUT)))
        return x;
    copy = run_scratch_take(pass->scratch, size);
    return memcpy(copy, x, size * sizeof *copy);
}

static void apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const size_t n_embd = pass->hparams->n_embd, n = pass->n;
    const float scale = pass->hparams->residual_scale;
    const float *input = keep_input(pass, x);
    float *normed = run_scratch_take(pass->scratch, n * n_embd);
    float *mixed = run_scratch_take(pass->scratch, n * n_embd);
    float *result = run_scratch_take(pass->scratch, n * n_embd);

    if (layer->mixers->n > 0) {
        run_norm_apply(layer->mix_norm_2.is_there ? &layer->mix_norm_2 : &layer->mix_norm, x, n,
                       n_embd, normed);
        run_mixers_apply(layer->mixers, pass, normed, mixed);
        run_norm_apply(&layer->mix_post_norm, mixed, n, n_embd, mixed);
        if (!layer->is_parallel)
            add(x, mixed, n * n_embd, scale);
        add_laurel(layer, pass, normed, x);
    }
    if (layer->feed_forward.is_there) {
        const struct run_feed_forward_input in = {normed, x, input};

        run_norm_apply(layer->is_parallel && !layer->ffn_norm.is_there ? &layer->mix_norm
                                                                       : &layer->ffn_norm,
                       x, n, n_embd, normed);
        run_feed_forward_apply(&layer->feed_forward, pass, &in, result);
        run_norm_apply(&layer->ffn_post_norm, result, n, n_embd, result);
        add(x, result, n * n_embd, scale);
    }
    if (layer->is_parallel && layer->mixers->n > 0)
        add(x, mixed, n * n_embd, scale);
    if (layer->is_halved)
        for (size_t i = 0; i < n * n_embd; i++)
            x[i] *= 0.5f;
}

/* Adds the per-layer embedding's contribution to each of n_streams streams of x. */
static void add_per_layer(const struct run_layer *layer, const struct run_pass *pass,
                          const float *opening, size_t n_streams, float *x)
{
    const size_t size = pass->n * pass->hparams->n_embd;
    float *difference;

    if (!layer->per_layer.gate.weight.data)
        return;
    difference = run_scratch_take(pass->scratch, size);
    run_per_layer_apply(&layer->per_layer, pass, opening, difference);
    for (size_t i = 0; i < n_streams; i++)
        add(x + i * size, difference, size, 1);
}

/* Applies the layer to the first stream, and the per-layer embedding to the others. */
static void apply_to_streams(struct run_layer *layer, const struct run_pass *pass, float *streams)
{
    const size_t n_embd = pass->hparams->n_embd, size = pass->n * n_embd;
    const size_t n_streams = pass->hparams->n_streams;
    float *predictions = run_scratch_take(pass->scratch, n_streams * size);
    float *active = run_scratch_take(pass->scratch, size);

    run_altup_predict(&layer->altup, pass, streams, predictions);
    memcpy(active, predictions, size * sizeof *active);
    apply(layer, pass, active);
    run_altup_correct(&layer->altup, pass, predictions, active, streams);
    for (size_t i = 0; i < size; i++)
        active[i] = streams[i] * layer->altup.scale[i % n_embd];
    add_per_layer(layer, pass, active, n_streams - 1, streams + size);
}

static void apply_scale(const struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const size_t size = pass->n * pass->hparams->n_embd;

    if (!layer->scale)
        return;
    if (pass->hparams->architecture->layers & RUN_SCALES_EMBEDDINGS)
        add(x, pass->embeddings, size, *layer->scale);
    else
        for (size_t i = 0; i < size; i++)
            x[i] *= *layer->scale;
}

void run_layer_apply(struct run_layer *layer, const struct run_pass *pass, float *x)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);

    if (pass->hparams->n_streams > 1) {
        apply_to_streams(layer, pass, x);
    } else {
        apply(layer, pass, x);
        add_per_layer(layer, pass, x, 1, x);
    }
    apply_scale(layer, pass, x);
    run_scratch_release(pass->scratch, mark);
}
