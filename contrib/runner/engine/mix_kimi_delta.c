/*
 * Kimi delta attention (KDA, Kimi Team 2025): a gated delta net with a decay for each element of a
 * key.
 */
#include "contrib/runner/compute/delta_rule.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>

struct kimi_delta_layer {
    size_t n_inner;                /* heads · width */
    struct run_linear products[3]; /* [n_embd] to q, k, v, [n_inner] each */
    struct run_convolution convolutions[3];
    struct run_low_rank decay,
        gate;               /* [n_embd] to the input of decays, and to gates, [n_inner] each */
    struct run_linear beta; /* [n_embd] to one for each head */
    const float *dt_bias;   /* [n_inner] */
    const float *a;         /* [heads] */
    struct run_delta_rule rule;
    struct run_norm_layer norm; /* of each head's result */
    struct run_linear out;      /* [n_inner] to [n_embd] */
};

static const char *const product_names[] = {"attn_q", "attn_k", "attn_v"};
static const char *const convolution_names[] = {"ssm_conv1d_q", "ssm_conv1d_k", "ssm_conv1d_v"};

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct kimi_delta_layer *layer = mixer;
    const uint64_t n_embd = hparams->n_embd;
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_a");
    const uint64_t width = run_load_n_elements(loader, "ssm_norm.weight");
    const uint64_t n_inner =
        n_heads <= RUN_MAX_CHANNELS && width <= RUN_MAX_CHANNELS ? n_heads * width : 0;

    if (n_inner == 0) {
        run_loader_refuse(loader, "tensors/%sssm_a and ssm_norm: missing or too large",
                          loader->prefix);
        return;
    }
    layer->n_inner = n_inner;
    layer->rule = (struct run_delta_rule){
        .n_heads = n_heads,
        .n_heads_k = n_heads,
        .width_k = width,
        .width_v = width,
        .n_decays = width,
    };
    for (size_t i = 0; i < 3; i++) {
        run_load_linear(loader, product_names[i], n_embd, n_inner, &layer->products[i]);
        run_load_convolution(loader, convolution_names[i], n_inner, &layer->convolutions[i]);
    }
    run_low_rank_load(loader, "ssm_f_", 'a', n_embd, n_inner, 1, RUN_IDENTITY, NULL, &layer->decay);
    run_low_rank_load(loader, "ssm_g_", 'a', n_embd, n_inner, 1, RUN_IDENTITY, NULL, &layer->gate);
    run_load_linear(loader, "ssm_beta", n_embd, n_heads, &layer->beta);
    layer->dt_bias = run_load_vector(loader, "ssm_dt.bias", n_inner);
    layer->a = run_load_vector(loader, "ssm_a", n_heads);
    layer->rule.state = run_load_state(loader, n_inner, width, 0);
    run_load_norm_if(loader, "ssm_norm", RUN_NORM_RMS, hparams->norm_epsilon, width, &layer->norm);
    run_load_linear(loader, "attn_output", n_inner, n_embd, &layer->out);
}

/* qkv = convolved queries, keys and values, three [n_inner] in a row. */
static void project(struct kimi_delta_layer *layer, const struct run_pass *pass, const float *x,
                    float *qkv)
{
    const size_t n = pass->n, n_inner = layer->n_inner;
    float *product = run_scratch_take(pass->scratch, n * n_inner);
    float *convolved = run_scratch_take(pass->scratch, n * n_inner);

    for (size_t i = 0; i < 3; i++) {
        run_linear_apply(&layer->products[i], 0, x, n, product);
        run_convolve(&layer->convolutions[i], product, n_inner, n, convolved);
        run_activate(RUN_SILU, NULL, convolved, n * n_inner);
        run_copy_rows(convolved, n_inner, n, n_inner, qkv + i * n_inner, 3 * n_inner);
    }
    run_l2_norm(qkv, n, 2 * layer->rule.n_heads, layer->rule.width_k, 3 * n_inner, RUN_L2_EPSILON);
}

static void make_steps(const struct kimi_delta_layer *layer, const struct run_pass *pass,
                       const float *x, float *decay, float *beta)
{
    const size_t n = pass->n, n_inner = layer->n_inner;

    run_low_rank_apply(&layer->decay, pass, 0, x, decay);
    for (size_t i = 0; i < n * n_inner; i++) {
        const size_t at = i % n_inner;

        decay[i] =
            expf(layer->a[at / layer->rule.width_k] * run_softplus(decay[i] + layer->dt_bias[at]));
    }
    run_linear_apply(&layer->beta, 0, x, n, beta);
    for (size_t i = 0; i < n * layer->rule.n_heads; i++)
        beta[i] = run_sigmoid(beta[i]);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct kimi_delta_layer *layer = mixer;
    const size_t n = pass->n, n_inner = layer->n_inner, n_heads = layer->rule.n_heads;
    float *qkv = run_scratch_take(pass->scratch, 3 * n * n_inner);
    float *decay = run_scratch_take(pass->scratch, n * n_inner);
    float *beta = run_scratch_take(pass->scratch, n * n_heads);
    float *gates = run_scratch_take(pass->scratch, n * n_inner);
    float *found = run_scratch_take(pass->scratch, n * n_inner);
    const struct run_delta_rows rows = {.q = qkv,
                                        .k = qkv + n_inner,
                                        .v = qkv + 2 * n_inner,
                                        .stride = 3 * n_inner,
                                        .decay = decay,
                                        .beta = beta};

    project(layer, pass, x, qkv);
    make_steps(layer, pass, x, decay, beta);
    run_low_rank_apply(&layer->gate, pass, 0, x, gates);
    run_delta_rule(&layer->rule, &rows, n, found);
    run_norm_apply(&layer->norm, found, n * n_heads, layer->rule.width_v, found);
    for (size_t i = 0; i < n * n_inner; i++)
        found[i] *= run_sigmoid(gates[i]);
    run_linear_apply(&layer->out, 0, found, n, out);
}

const struct run_mixer_ops run_kimi_delta_mixer = {
    .n_bytes = sizeof(struct kimi_delta_layer),
    .load = load,
    .apply = apply,
};
