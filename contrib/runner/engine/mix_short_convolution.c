#include "contrib/runner/engine/mix_short_convolution.h"

#include <errno.h>

void run_short_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_short_layer *layer)
{
    const uint64_t n_embd = hparams->n_embd;

    run_load_linear(loader, "shortconv.in_proj", n_embd, 3 * n_embd, &layer->in);
    run_load_convolution(loader, "shortconv.conv", n_embd, &layer->convolution);
    run_load_linear(loader, "shortconv.out_proj", n_embd, n_embd, &layer->out);
}

void run_short_reset(struct run_short_layer *layer)
{
    run_convolution_reset(&layer->convolution);
}

int run_short_apply(struct run_short_layer *layer, const struct run_pass *pass, const float *x,
                    float *out)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd, row = 3 * n_embd;
    float *product = run_scratch_take(pass->scratch, n * row);
    float *convolved = run_scratch_take(pass->scratch, n * n_embd);

    if (!product || !convolved)
        return -ENOMEM;
    run_linear_apply(&layer->in, 0, x, n, product);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_embd; j++)
            product[i * row + j] *= product[i * row + 2 * n_embd + j];
    run_convolve(&layer->convolution, product, row, n, convolved);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n_embd; j++)
            convolved[i * n_embd + j] *= product[i * row + n_embd + j];
    run_linear_apply(&layer->out, 0, convolved, n, out);
    return 0;
}
