/*
 * Mamba (Gu and Dao 2023), with the norms of Jamba and Falcon Mamba, PLaMo 2's form of it, whose
 * heads have one step and one decay for all their elements, and Mamba 2 (Dao and Gu 2024).
 */
#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

struct mamba_layer {
    size_t n_inner;       /* channels: heads · width */
    size_t b_at, c_at;    /* where b and c begin in a row of `x`'s product; Mamba 2: of channels */
    struct run_linear in; /* [n_embd] to channels and gates: one after the other, or head by head
                             the gates first; Mamba 2: to gates, convolution's inputs (x, b and c),
                             and steps */
    struct run_convolution convolution;
    struct run_scan scan;
    struct run_norm_layer norm; /* Mamba 2: of each group of the gated result, or none */
    struct run_linear out;      /* [n_inner] to [n_embd] */

    const float *dt_bias; /* [heads]; Mamba 2 */

    /* Mamba and PLaMo 2. */
    size_t n_rank;       /* of the steps before `dt` */
    size_t dt_at;        /* where these begin in a row of `x`'s product */
    struct run_linear x; /* [n_inner] to steps, b and c, or b, c and steps; Mamba 2: empty */
    struct run_norm_layer dt_norm, b_norm, c_norm;
    struct run_linear dt; /* [n_rank] to a step for each head */
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

/* Set the shape of the scan. Returns false after refusing tensors that do not fit together. */
static bool find_sizes(struct run_loader *loader, uint64_t n_inner, struct mamba_layer *layer)
{
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_d");
    const uint64_t n_a = run_load_n_elements(loader, "ssm_a");
    const uint64_t n_dt = run_load_n_elements(loader, "ssm_dt.weight");
    const uint64_t n_x = run_load_n_rows(loader, "ssm_x.weight");
    const bool is_plamo = n_heads < n_inner;
    struct run_scan *scan = &layer->scan;

    if (n_inner == 0 || n_heads == 0 || n_inner % n_heads != 0 || n_a == 0 || n_dt / n_heads == 0 ||
        n_x <= n_dt / n_heads + is_plamo || n_x > RUN_MAX_CHANNELS ||
        (!is_plamo && n_a < n_inner)) {
        run_loader_refuse(loader,
                          "tensors/%sssm_out, ssm_d, ssm_a, ssm_dt and ssm_x: shapes that do "
                          "not fit together",
                          loader->prefix);
        return false;
    }
    layer->n_rank = n_dt / n_heads;
    *scan = (struct run_scan){
        .is_mamba2 = is_plamo,
        .n_heads = n_heads,
        .width = n_inner / n_heads,
        .n_state = is_plamo ? (n_x - layer->n_rank) / 2 : n_a / n_inner,
        .n_groups = 1,
    };
    layer->dt_at = is_plamo ? 2 * scan->n_state : 0;
    layer->b_at = is_plamo ? 0 : layer->n_rank;
    layer->c_at = layer->b_at + scan->n_state;
    return true;
}

static bool find_sizes_2(struct run_loader *loader, uint64_t n_inner, uint64_t n_groups,
                         struct mamba_layer *layer)
{
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_a");
    const uint64_t n_channels = run_load_n_rows(loader, "ssm_conv1d.weight");

    if (n_groups == 0 || n_heads == 0 || n_heads % n_groups != 0 || n_inner == 0 ||
        n_inner % n_heads != 0 || n_channels <= n_inner ||
        (n_channels - n_inner) % (2 * n_groups) != 0) {
        run_loader_refuse(loader,
                          "tensors/%sssm_out, ssm_a and ssm_conv1d: shapes that do not fit "
                          "together with %llu as ssm.group_count",
                          loader->prefix, (unsigned long long)n_groups);
        return false;
    }
    layer->scan = (struct run_scan){
        .is_mamba2 = true,
        .n_heads = n_heads,
        .width = n_inner / n_heads,
        .n_state = (n_channels - n_inner) / (2 * n_groups),
        .n_groups = n_groups,
    };
    layer->b_at = n_inner;
    layer->c_at = n_inner + n_groups * layer->scan.n_state;
    return true;
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    const uint64_t n_embd = hparams->n_embd, n_groups = hparams->ssm_groups;
    const uint64_t n_inner = run_load_n_elements(loader, "ssm_out.weight") / n_embd;
    const bool is_2 = !run_loader_has(loader, "ssm_x.weight");
    struct mamba_layer *layer = mixer;
    struct run_scan *scan = &layer->scan;
    uint64_t n_channels = n_inner, n_gates = n_inner;

    if (!(is_2 ? find_sizes_2(loader, n_inner, n_groups, layer)
               : find_sizes(loader, n_inner, layer)))
        return;
    layer->n_inner = n_inner;
    if (is_2) {
        n_channels += 2 * n_groups * scan->n_state;
        n_gates += scan->n_heads; /* and steps */
        layer->dt_bias = run_load_vector(loader, "ssm_dt.bias", scan->n_heads);
        run_load_norm_if(loader, "ssm_norm", RUN_NORM_RMS, hparams->norm_epsilon, n_inner,
                         &layer->norm);
        layer->norm.width = n_inner / n_groups;
        layer->norm.n_groups = n_groups;
    } else {
        run_load_linear(loader, "ssm_x", n_inner, layer->n_rank + 2 * scan->n_state, &layer->x);
        load_norms(loader, hparams, layer);
        run_load_linear(loader, "ssm_dt", layer->n_rank, scan->n_heads, &layer->dt);
    }
    run_load_linear(loader, "ssm_in", n_embd, n_channels + n_gates, &layer->in);
    run_load_convolution(loader, "ssm_conv1d", "", n_channels, &layer->convolution);
    scan->a = run_load_vector(loader, "ssm_a",
                              scan->is_mamba2 ? scan->n_heads : scan->n_heads * scan->n_state);
    scan->d = run_load_vector(loader, "ssm_d", scan->n_heads);
    scan->state = run_load_state(loader, n_inner, scan->n_state, 0);
    run_load_linear(loader, "ssm_out", n_inner, n_embd, &layer->out);
}

/* Separate the gates, [n][n_inner], from the channels, and convolve these: [n][n_channels]. */
static void convolve(struct mamba_layer *layer, const struct run_pass *pass, const float *product,
                     float *convolved, float *gates)
{
    const size_t n = pass->n, n_inner = layer->n_inner, width = layer->scan.width;
    const bool is_2 = layer->dt_bias;
    const float *from = is_2 ? product : product + n_inner;
    size_t row = layer->in.weight.ne[1];

    if (is_2 || !layer->scan.is_mamba2) {
        run_copy_rows(from, row, n, n_inner, gates, n_inner);
        product += is_2 ? n_inner : 0;
    } else {
        float *inner = run_scratch_take(pass->scratch, n * n_inner);

        run_copy_rows(product, 2 * width, n * layer->scan.n_heads, width, gates, width);
        run_copy_rows(product + width, 2 * width, n * layer->scan.n_heads, width, inner, width);
        product = inner;
        row = n_inner;
    }
    run_convolve(&layer->convolution, product, row, n, convolved);
    run_activate(RUN_SILU, NULL, convolved, n * layer->convolution.n_channels);
}

/* Compute the steps, dt, and rows with b and c from the convolved channels. Returns the rows. */
static const float *make_rows(const struct mamba_layer *layer, const struct run_pass *pass,
                              const float *convolved, float *dt)
{
    const size_t n = pass->n, width = layer->x.weight.ne[1];
    float *product = run_scratch_take(pass->scratch, n * width);
    float *narrow = run_scratch_take(pass->scratch, n * layer->n_rank);

    run_linear_apply(&layer->x, 0, convolved, n, product);
    run_norm_rows(&layer->dt_norm, product + layer->dt_at, n, width);
    run_norm_rows(&layer->b_norm, product + layer->b_at, n, width);
    run_norm_rows(&layer->c_norm, product + layer->c_at, n, width);
    run_copy_rows(product + layer->dt_at, width, n, layer->n_rank, narrow, layer->n_rank);
    run_linear_apply(&layer->dt, 0, narrow, n, dt);
    return product;
}

/* found = the results of the heads, gates: both [n][n_inner]. */
static void find(struct mamba_layer *layer, const struct run_pass *pass, const float *product,
                 float *found, float *gates)
{
    const size_t n = pass->n, n_heads = layer->scan.n_heads, row = layer->in.weight.ne[1];
    const size_t n_channels = layer->convolution.n_channels;
    float *convolved = run_scratch_take(pass->scratch, n * n_channels);
    float *dt = run_scratch_take(pass->scratch, n * n_heads);
    const float *rows = convolved;

    convolve(layer, pass, product, convolved, gates);
    if (!layer->dt_bias)
        rows = make_rows(layer, pass, convolved, dt);
    for (size_t i = 0; layer->dt_bias && i < n * n_heads; i++)
        dt[i] =
            product[(i / n_heads + 1) * row - n_heads + i % n_heads] + layer->dt_bias[i % n_heads];
    run_scan(&layer->scan,
             &(struct run_scan_rows){
                 .x = convolved,
                 .x_stride = n_channels,
                 .dt = dt,
                 .dt_stride = n_heads,
                 .b = rows + layer->b_at,
                 .c = rows + layer->c_at,
                 .bc_stride = layer->dt_bias ? n_channels : layer->x.weight.ne[1],
             },
             n, found);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct mamba_layer *layer = mixer;
    const size_t n = pass->n, n_inner = layer->n_inner;
    float *product = run_scratch_take(pass->scratch, n * layer->in.weight.ne[1]);
    float *found = run_scratch_take(pass->scratch, n * n_inner);
    float *gates = run_scratch_take(pass->scratch, n * n_inner);

    run_linear_apply(&layer->in, 0, x, n, product);
    find(layer, pass, product, found, gates);
    run_activate_gated(RUN_SILU, gates, found, n * n_inner);
    run_norm_apply(&layer->norm, gates, n * layer->norm.n_groups, layer->norm.width, gates);
    run_linear_apply(&layer->out, 0, gates, n, out);
}

const struct run_mixer_ops run_mamba_mixer = {
    .n_bytes = sizeof(struct mamba_layer),
    .load = load,
    .apply = apply,
};
