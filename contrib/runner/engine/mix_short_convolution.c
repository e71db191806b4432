/* The gated short convolution of LFM2 (Liquid AI 2025). */
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

/* out(c · convolution(b · x)), where b, c and x are products of the input. */
struct short_layer {
    struct run_linear in; /* [n_embd] to b, c and x, each [n_embd] */
    struct run_convolution convolution;
    struct run_linear out;
};

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct short_layer *layer = mixer;
    const uint64_t n_embd = hparams->n_embd;

    run_load_linear(loader, "shortconv.in_proj", n_embd, 3 * n_embd, &layer->in);
    run_load_convolution(loader, "shortconv.conv", "", n_embd, &layer->convolution);
    run_load_linear(loader, "shortconv.out_proj", n_embd, n_embd, &layer->out);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct short_layer *layer = mixer;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, row = 3 * n_embd;
    float *product = run_scratch_take(pass->scratch, n * row);
    float *convolved = run_scratch_take(pass->scratch, n * n_embd);

    run_linear_apply(&layer->in, 0, x, n, product);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_embd; j++)
            product[i * row + j] *= product[i * row + 2 * n_embd + j];
    run_convolve(&layer->convolution, product, row, n, convolved);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_embd; j++)
            convolved[i * n_embd + j] *= product[i * row + n_embd + j];
    run_linear_apply(&layer->out, 0, convolved, n, out);
}

const struct run_mixer_ops run_short_mixer = {
    .n_bytes = sizeof(struct short_layer),
    .load = load,
    .apply = apply,
};
