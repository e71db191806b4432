#include "contrib/runner/engine/per_layer.h"

#include <math.h>

void run_per_layer_load_source(struct run_loader *loader, struct run_hparams *hparams,
                               uint64_t n_vocab, struct run_per_layer_source *source)
{
    const uint64_t n_embd = hparams->n_embd, n_layer = hparams->n_layer;
    const uint64_t width = run_load_n_elements(loader, "per_layer_proj_norm.weight");

    if (width == 0)
        return;
    hparams->n_per_layer = width;
    run_load_norm_if(loader, "per_layer_proj_norm", RUN_NORM_RMS, hparams->norm_epsilon, width,
                     &source->norm);
    run_load_linear(loader, "per_layer_model_proj", n_embd, width * n_layer, &source->projection);
    run_load_linear(loader, "per_layer_token_embd", width * n_layer, n_vocab, &source->tokens);
}

void run_per_layer_load(struct run_loader *loader, const struct run_hparams *hparams,
                        uint32_t index, struct run_per_layer *layer)
{
    if (hparams->n_per_layer == 0)
        return;
    layer->index = index;
    run_load_linear(loader, "inp_gate", hparams->n_embd, hparams->n_per_layer, &layer->gate);
    run_load_linear(loader, "proj", hparams->n_per_layer, hparams->n_embd, &layer->projection);
    run_load_norm_if(loader, "post_norm", RUN_NORM_RMS, hparams->norm_epsilon, hparams->n_embd,
                     &layer->post_norm);
}

const float *run_per_layer_make(const struct run_per_layer_source *source,
                                const struct run_pass *pass, const float *x)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, width = hparams->n_per_layer, row = width * hparams->n_layer;
    const float token_scale = sqrtf((float)width);
    const float projection_scale = 1 / sqrtf((float)hparams->n_embd);
    float *projected = run_scratch_take(pass->scratch, n * row);
    float *token = run_scratch_take(pass->scratch, row);

    run_linear_apply(&source->projection, 0, x, n, projected);
    for (size_t i = 0; i < n * row; i++)
        projected[i] *= projection_scale;
    run_norm_apply(&source->norm, projected, n * hparams->n_layer, width, projected);
    for (size_t i = 0; i < n; i++) {
        run_tensor_decode_row(&source->tokens.weight, (uint64_t)pass->tokens[i], token);
        for (size_t j = 0; j < row; j++)
            projected[i * row + j] =
                (projected[i * row + j] + token[j] * token_scale) * 0.70710678118654752440f;
    }
    return projected;
}

void run_per_layer_apply(const struct run_per_layer *layer, const struct run_pass *pass,
                         const float *x, float *out)
{
    const struct run_hparams *hparams = pass->hparams;
    const size_t n = pass->n, width = hparams->n_per_layer;
    float *gate = run_scratch_take(pass->scratch, n * width);

    run_linear_apply(&layer->gate, 0, x, n, gate);
    for (size_t i = 0; i < n; i++)
        run_activate_gated(hparams->architecture->activation, gate + i * width,
                           pass->per_layer + (i * hparams->n_layer + layer->index) * width, width);
    run_linear_apply(&layer->projection, 0, gate, n, out);
    run_norm_apply(&layer->post_norm, out, n, hparams->n_embd, out);
}
