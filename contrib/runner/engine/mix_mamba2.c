/* Mamba 2 (Dao and Gu 2024). */
#include "contrib/runner/compute/selective_scan.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct mamba2_layer {
    size_t n_inner;       /* heads · width */
    struct run_linear in; /* [n_embd] to gates, convolution's inputs (x, b and c), and steps */
    struct run_convolution convolution;
    const float *dt_bias; /* [heads] */
    struct run_scan scan;
    struct run_norm_layer norm; /* norm of each group of the gated result, or none */
    struct run_linear out;      /* [n_inner] to [n_embd] */
};

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct mamba2_layer *layer = mixer;
    const uint64_t n_inner = run_load_n_elements(loader, "ssm_out.weight") / hparams->n_embd;
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_a");
    const uint64_t n_channels = run_load_n_rows(loader, "ssm_conv1d.weight");
    const uint64_t n_groups = hparams->ssm_groups;
    struct run_scan *scan = &layer->scan;

    if (n_groups == 0 || n_heads == 0 || n_heads % n_groups != 0 || n_inner == 0 ||
        n_inner % n_heads != 0 || n_channels <= n_inner ||
        (n_channels - n_inner) % (2 * n_groups) != 0) {
        run_loader_refuse(loader,
                          "tensors/%sssm_out, ssm_a and ssm_conv1d: shapes that do not fit "
                          "together with %llu as ssm.group_count",
                          loader->prefix, (unsigned long long)n_groups);
        return;
    }
    layer->n_inner = n_inner;
    *scan = (struct run_scan){
        .n_heads = n_heads,
        .width = n_inner / n_heads,
        .n_state = (n_channels - n_inner) / (2 * n_groups),
        .n_groups = n_groups,
    };
    run_load_linear(loader, "ssm_in", hparams->n_embd, n_inner + n_channels + n_heads, &layer->in);
    run_load_convolution(loader, "ssm_conv1d", n_channels, &layer->convolution);
    layer->dt_bias = run_load_vector(loader, "ssm_dt.bias", n_heads);
    scan->a = run_load_vector(loader, "ssm_a", n_heads);
    scan->d = run_load_vector(loader, "ssm_d", n_heads);
    scan->state = run_load_state(loader, n_inner, scan->n_state, 0);
    run_load_norm_if(loader, "ssm_norm", RUN_NORM_RMS, hparams->norm_epsilon, n_inner,
                     &layer->norm);
    layer->norm.width = n_inner / n_groups;
    layer->norm.n_groups = n_groups;
    run_load_linear(loader, "ssm_out", n_inner, hparams->n_embd, &layer->out);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct mamba2_layer *layer = mixer;
    const size_t n = pass->n, n_inner = layer->n_inner, n_heads = layer->scan.n_heads;
    const size_t n_channels = layer->convolution.n_channels, row = layer->in.weight.ne[1];
    float *product = run_scratch_take(pass->scratch, n * row);
    float *convolved = run_scratch_take(pass->scratch, n * n_channels);
    float *dt = run_scratch_take(pass->scratch, n * n_heads);
    float *gates = run_scratch_take(pass->scratch, n * n_inner);
    float *found = run_scratch_take(pass->scratch, n * n_inner);
    const struct run_scan_rows rows = {
        .x = convolved,
        .x_stride = n_channels,
        .dt = dt,
        .dt_stride = n_heads,
        .b = convolved + n_inner,
        .c = convolved + n_inner + layer->scan.n_groups * layer->scan.n_state,
        .bc_stride = n_channels,
    };

    run_linear_apply(&layer->in, 0, x, n, product);
    run_copy_rows(product, row, n, n_inner, gates, n_inner);
    run_convolve(&layer->convolution, product + n_inner, row, n, convolved);
    run_activate(RUN_SILU, NULL, convolved, n * n_channels);
    for (size_t i = 0; i < n; i++)
        for (size_t head = 0; head < n_heads; head++)
            dt[i * n_heads + head] =
                product[i * row + n_inner + n_channels + head] + layer->dt_bias[head];
    run_scan_mamba2(&layer->scan, &rows, n, found);
    run_activate_gated(RUN_SILU, gates, found, n * n_inner);
    run_norm_apply(&layer->norm, gates, n * layer->norm.n_groups, layer->norm.width, gates);
    run_linear_apply(&layer->out, 0, gates, n, out);
}

const struct run_mixer_ops run_mamba2_mixer = {
    .n_bytes = sizeof(struct mamba2_layer),
    .load = load,
    .apply = apply,
};
