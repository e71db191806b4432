#include "contrib/runner/engine/altup.h"

#include <math.h>
#include <string.h>

/* The smallest length of a row. */
#define LEAST_LENGTH 1e-5

enum { MAX_STREAMS = 64 };

void run_altup_load_ends(struct run_loader *loader, struct run_hparams *hparams,
                         struct run_altup_ends *ends)
{
    const uint64_t n_embd = hparams->n_embd;
    const uint64_t n = run_load_n_rows(loader, "altup_proj.weight") / n_embd;

    hparams->n_streams = 1;
    if (!run_loader_has(loader, "altup_proj.weight"))
        return;
    if (n == 0 || n >= MAX_STREAMS) {
        run_loader_refuse(loader, "tensors/altup_proj.weight: %llu matrices",
                          (unsigned long long)n);
        return;
    }
    hparams->n_streams = (uint32_t)n + 1;
    run_load_linears(loader, "altup_proj", n_embd, n_embd, n, &ends->in);
    run_load_linears(loader, "altup_unembd_proj", n_embd, n_embd, n, &ends->out);
}

void run_altup_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_altup *altup)
{
    const uint64_t n_embd = hparams->n_embd, n = hparams->n_streams;

    if (n <= 1)
        return;
    run_load_norm_if(loader, "altup_router_norm", RUN_NORM_RMS, hparams->norm_epsilon, n_embd,
                     &altup->router_norm);
    run_load_linear(loader, "altup_router", n_embd, n, &altup->router);
    run_load_linear(loader, "altup_predict_coef", n, n * n, &altup->predict);
    run_load_linear(loader, "altup_correct_coef", n, n, &altup->correct);
    altup->scale = run_load_vector(loader, "altup_correct_scale.weight", n_embd);
}

static double length(const float *row, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)row[i] * (double)row[i];
    return fmax(sqrt(sum), LEAST_LENGTH);
}

/* to = from · matrix, each row scaled to the length of the first stream's row. */
static void project(const struct run_linear *linear, size_t matrix, const struct run_pass *pass,
                    const float *first, const float *from, float *to)
{
    const size_t n_embd = pass->hparams->n_embd;

    run_linear_apply(linear, matrix, from, pass->n, to);
    for (size_t i = 0; i < pass->n; i++) {
        float *row = to + i * n_embd;
        const float factor = (float)(length(first + i * n_embd, n_embd) / length(row, n_embd));

        for (size_t j = 0; j < n_embd; j++)
            row[j] *= factor;
    }
}

void run_altup_begin(const struct run_altup_ends *ends, const struct run_pass *pass, float *streams)
{
    const size_t size = pass->n * pass->hparams->n_embd;

    for (size_t i = 1; i < pass->hparams->n_streams; i++)
        project(&ends->in, i - 1, pass, streams, streams, streams + i * size);
}

void run_altup_end(const struct run_altup_ends *ends, const struct run_pass *pass, float *streams)
{
    const size_t n_streams = pass->hparams->n_streams, size = pass->n * pass->hparams->n_embd;
    float *projected = run_scratch_take(pass->scratch, n_streams * size);

    for (size_t i = 1; i < n_streams; i++)
        project(&ends->out, i - 1, pass, streams, streams + i * size, projected + i * size);
    for (size_t j = 0; j < size && n_streams > 1; j++) {
        float sum = streams[j];

        for (size_t i = 1; i < n_streams; i++)
            sum += projected[i * size + j];
        streams[j] = sum / (float)n_streams;
    }
}

/* The modalities of AltUp's router: [n][n_streams]. */
static float *route(const struct run_altup *altup, const struct run_pass *pass, const float *x)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    const size_t n_streams = pass->hparams->n_streams;
    float *normed = run_scratch_take(pass->scratch, n * n_embd);
    float *routes = run_scratch_take(pass->scratch, n * n_streams);

    run_norm_apply(&altup->router_norm, x, n, n_embd, normed);
    for (size_t i = 0; i < n * n_embd; i++)
        normed[i] /= (float)n_embd;
    run_linear_apply(&altup->router, 0, normed, n, routes);
    for (size_t i = 0; i < n * n_streams; i++)
        routes[i] = tanhf(routes[i]);
    return routes;
}

void run_altup_predict(const struct run_altup *altup, const struct run_pass *pass,
                       const float *streams, float *predictions)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, size = n * n_embd;
    const size_t n_streams = pass->hparams->n_streams;
    const float *routes = route(altup, pass, streams);
    float *mix = run_scratch_take(pass->scratch, n * n_streams * n_streams);

    run_linear_apply(&altup->predict, 0, routes, n, mix);
    memcpy(predictions, streams, n_streams * size * sizeof *predictions);
    for (size_t to = 0; to < n_streams; to++) {
        for (size_t from = 0; from < n_streams; from++) {
            for (size_t i = 0; i < n; i++) {
                const float factor = mix[(i * n_streams + to) * n_streams + from];
                const float *row = streams + from * size + i * n_embd;
                float *sum = predictions + to * size + i * n_embd;

                for (size_t j = 0; j < n_embd; j++)
                    sum[j] += factor * row[j];
            }
        }
    }
}

void run_altup_correct(const struct run_altup *altup, const struct run_pass *pass,
                       const float *predictions, const float *active, float *streams)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, size = n * n_embd;
    const size_t n_streams = pass->hparams->n_streams;
    const float *routes = route(altup, pass, active);
    float *factors = run_scratch_take(pass->scratch, n * n_streams);

    run_linear_apply(&altup->correct, 0, routes, n, factors);
    for (size_t to = 0; to < n_streams; to++) {
        for (size_t k = 0; k < size; k++) {
            const float factor = 1 + factors[k / n_embd * n_streams + to];

            streams[to * size + k] =
                predictions[to * size + k] + (active[k] - predictions[k]) * factor;
        }
    }
}

/* ---- per-layer embeddings ---- */

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
