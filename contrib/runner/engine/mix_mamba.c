/*
 * Mamba (Gu and Dao 2023), with the norms of Jamba and Falcon Mamba, and PLaMo 2's form of it,
 * whose heads have one step and one decay for all their elements, as in Mamba 2.
 */
#include "contrib/runner/compute/selective_scan.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct mamba_layer {
    bool has_heads;           /* PLaMo 2 */
    size_t n_inner;           /* channels: heads · width */
    size_t n_rank;            /* of the steps before `dt` */
    size_t b_at, c_at, dt_at; /* where these begin in a row of `x`'s product */
    struct run_linear in; /* [n_embd] to channels and gates: one after the other, or head by head
                             the gates first */
    struct run_convolution convolution;
    struct run_linear x; /* [n_inner] to steps, b and c, or b, c and steps */
    struct run_norm_layer dt_norm, b_norm, c_norm;
    struct run_linear dt; /* [n_rank] to a step for each head */
    struct run_scan scan;
    struct run_linear out; /* [n_inner] to [n_embd] */
};

/* The epsilon of Falcon Mamba's norms without weights, which its files do not state. */
#define PLAIN_EPSILON 1e-6f

static void load_norms(struct run_loader *loader, const struct run_hparams *hparams,
                       struct mamba_layer *layer)
{
    const float epsilon = hparams->ssm_norms ? PLAIN_EPSILON : hparams->norm_epsilon;

    run_load_norm_if(loader, "ssm_dt_norm", RUN_NORM_RMS, epsilon, layer->n_rank, &layer->dt_norm);
    run_load_norm_if(loader, "ssm_b_norm", RUN_NORM_RMS, epsilon, layer->scan.n_state,
                     &layer->b_norm);
    run_load_norm_if(loader, "ssm_c_norm", RUN_NORM_RMS, epsilon, layer->scan.n_state,
                     &layer->c_norm);
    if (hparams->ssm_norms)
        layer->dt_norm.is_there = layer->b_norm.is_there = layer->c_norm.is_there = true;
}

/* Derives all sizes from the tensors; leaves 0 heads if their shapes do not match. */
static void find_sizes(struct run_loader *loader, const struct run_hparams *hparams,
                       struct mamba_layer *layer)
{
    const uint64_t n_inner = run_load_n_elements(loader, "ssm_out.weight") / hparams->n_embd;
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_d");
    const uint64_t n_a = run_load_n_elements(loader, "ssm_a");
    const uint64_t n_dt = run_load_n_elements(loader, "ssm_dt.weight");
    const uint64_t n_x = run_load_n_rows(loader, "ssm_x.weight");
    struct run_scan *scan = &layer->scan;

    if (n_inner == 0 || n_heads == 0 || n_inner % n_heads != 0 || n_a == 0 || n_dt / n_heads == 0 ||
        n_x <= n_dt / n_heads || n_x > RUN_MAX_CHANNELS)
        return;
    layer->has_heads = n_heads < n_inner;
    layer->n_inner = n_inner;
    layer->n_rank = n_dt / n_heads;
    *scan = (struct run_scan){
        .n_heads = n_heads,
        .width = n_inner / n_heads,
        .n_state = layer->has_heads ? (n_x - layer->n_rank) / 2 : n_a / n_inner,
        .n_groups = 1,
    };
    layer->dt_at = layer->has_heads ? 2 * scan->n_state : 0;
    layer->b_at = layer->has_heads ? 0 : layer->n_rank;
    layer->c_at = layer->b_at + scan->n_state;
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct mamba_layer *layer = mixer;
    struct run_scan *scan = &layer->scan;

    find_sizes(loader, hparams, layer);
    if (scan->n_heads == 0 || scan->n_state == 0) {
        run_loader_refuse(loader,
                          "tensors/%sssm_out, ssm_d, ssm_a, ssm_dt and ssm_x: shapes that do "
                          "not fit together",
                          loader->prefix);
        return;
    }
    run_load_linear(loader, "ssm_in", hparams->n_embd, 2 * layer->n_inner, &layer->in);
    run_load_convolution(loader, "ssm_conv1d", layer->n_inner, &layer->convolution);
    run_load_linear(loader, "ssm_x", layer->n_inner, layer->n_rank + 2 * scan->n_state, &layer->x);
    load_norms(loader, hparams, layer);
    run_load_linear(loader, "ssm_dt", layer->n_rank, scan->n_heads, &layer->dt);
    scan->a = run_load_vector(loader, "ssm_a",
                              layer->has_heads ? scan->n_heads : scan->n_heads * scan->n_state);
    scan->d = run_load_vector(loader, "ssm_d", scan->n_heads);
    scan->state = run_load_state(loader, layer->n_inner, scan->n_state, 0);
    run_load_linear(loader, "ssm_out", layer->n_inner, hparams->n_embd, &layer->out);
}

static void split(const struct mamba_layer *layer, const float *both, size_t n, float *inner,
                  float *gates)
{
    const size_t width = layer->scan.width, n_inner = layer->n_inner;

    if (layer->has_heads) {
        run_copy_rows(both, 2 * width, n * layer->scan.n_heads, width, gates, width);
        run_copy_rows(both + width, 2 * width, n * layer->scan.n_heads, width, inner, width);
    } else {
        run_copy_rows(both, 2 * n_inner, n, n_inner, inner, n_inner);
        run_copy_rows(both + n_inner, 2 * n_inner, n, n_inner, gates, n_inner);
    }
}

static void norm_part(const struct run_norm_layer *norm, float *part, size_t n, size_t stride)
{
    if (norm->is_there)
        run_norm(norm->kind, norm->epsilon, part, n, norm->width, stride, norm->weight, norm->bias,
                 1, part);
}

/* Run the recurrence on the convolved channels, with steps, b and c computed from them. */
static void scan(struct mamba_layer *layer, const struct run_pass *pass, const float *inner,
                 float *out)
{
    const size_t n = pass->n, width = layer->n_rank + 2 * layer->scan.n_state;
    float *product = run_scratch_take(pass->scratch, n * width);
    float *narrow = run_scratch_take(pass->scratch, n * layer->n_rank);
    float *dt = run_scratch_take(pass->scratch, n * layer->scan.n_heads);
    const struct run_scan_rows rows = {
        .x = inner,
        .x_stride = layer->n_inner,
        .dt = dt,
        .dt_stride = layer->scan.n_heads,
        .b = product + layer->b_at,
        .c = product + layer->c_at,
        .bc_stride = width,
    };

    run_linear_apply(&layer->x, 0, inner, n, product);
    norm_part(&layer->dt_norm, product + layer->dt_at, n, width);
    norm_part(&layer->b_norm, product + layer->b_at, n, width);
    norm_part(&layer->c_norm, product + layer->c_at, n, width);
    run_copy_rows(product + layer->dt_at, width, n, layer->n_rank, narrow, layer->n_rank);
    run_linear_apply(&layer->dt, 0, narrow, n, dt);
    if (layer->has_heads)
        run_scan_mamba2(&layer->scan, &rows, n, out);
    else
        run_scan_mamba(&layer->scan, &rows, n, out);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct mamba_layer *layer = mixer;
    const size_t n = pass->n, n_inner = layer->n_inner;
    float *both = run_scratch_take(pass->scratch, 2 * n * n_inner);
    float *inner = run_scratch_take(pass->scratch, n * n_inner);
    float *gates = run_scratch_take(pass->scratch, n * n_inner);

    run_linear_apply(&layer->in, 0, x, n, both);
    split(layer, both, n, inner, gates);
    run_convolve(&layer->convolution, inner, n_inner, n, both);
    run_activate(RUN_SILU, NULL, both, n * n_inner);
    scan(layer, pass, both, inner);
    run_activate_gated(RUN_SILU, gates, inner, n * n_inner);
    run_linear_apply(&layer->out, 0, gates, n, out);
}

const struct run_mixer_ops run_mamba_mixer = {
    .n_bytes = sizeof(struct mamba_layer),
    .load = load,
    .apply = apply,
};
