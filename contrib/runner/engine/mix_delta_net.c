/* The gated delta net (Yang, Kautz and Hatamizadeh 2024) of Qwen3-Next and Qwen 3.5. */
#include "contrib/runner/compute/delta_rule.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Kept for a rewind: the memory before the last pass, and the inputs of its tokens. */
struct kept {
    float *memory;    /* the rule's state, then the convolution's past */
    float *inputs;    /* of each token: qkv, beta, alpha */
    size_t n_room, n; /* tokens */
};

struct delta_net_layer {
    size_t n_key, n_value;         /* of all heads together */
    struct run_linear qkv, z;      /* [n_embd] to the convolution's input, and to gates, or … */
    struct run_linear fused;       /* … both: for each key head q, k, v, z */
    struct run_linear beta, alpha; /* [n_embd] to one of each per head, or … */
    struct run_linear beta_alpha;  /* … both: for each key head its betas, its alphas */
    struct run_convolution convolution;
    const float *dt_bias, *a; /* [heads] */
    struct run_delta_rule rule;
    struct run_norm_layer norm; /* norm of each head's result */
    struct run_linear out;      /* [n_value] to [n_embd] */
    struct kept kept;
};

static void load_products(struct run_loader *loader, const struct run_hparams *hparams,
                          struct delta_net_layer *layer)
{
    const uint64_t n_embd = hparams->n_embd, n_heads = layer->rule.n_heads;
    const uint64_t n_channels = 2 * layer->n_key + layer->n_value;

    run_load_linear_if(loader, "ssm_in", n_embd, n_channels + layer->n_value, &layer->fused);
    if (!layer->fused.weight.data) {
        run_load_linear(loader, "attn_qkv", n_embd, n_channels, &layer->qkv);
        run_load_linear(loader, "attn_gate", n_embd, layer->n_value, &layer->z);
    }
    run_load_linear_if(loader, "ssm_ba", n_embd, 2 * n_heads, &layer->beta_alpha);
    if (!layer->beta_alpha.weight.data) {
        run_load_linear(loader, "ssm_beta", n_embd, n_heads, &layer->beta);
        run_load_linear(loader, "ssm_alpha", n_embd, n_heads, &layer->alpha);
    }
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    struct delta_net_layer *layer = mixer;
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_a");
    const uint64_t width_v = run_load_n_elements(loader, "ssm_norm.weight");
    const uint64_t n_channels = run_load_n_rows(loader, "ssm_conv1d.weight");
    const uint64_t n_heads_k = hparams->ssm_groups;
    struct run_delta_rule *rule = &layer->rule;

    if (n_heads == 0 || width_v == 0 || n_heads_k == 0 || n_heads % n_heads_k != 0 ||
        n_heads > RUN_MAX_CHANNELS || width_v > RUN_MAX_CHANNELS ||
        n_channels <= n_heads * width_v ||
        (n_channels - n_heads * width_v) % (2 * n_heads_k) != 0) {
        run_loader_refuse(loader,
                          "tensors/%sssm_a, ssm_norm and ssm_conv1d: shapes that do not fit "
                          "together with %llu as ssm.group_count",
                          loader->prefix, (unsigned long long)n_heads_k);
        return;
    }
    layer->n_value = n_heads * width_v;
    layer->n_key = (n_channels - layer->n_value) / 2;
    *rule = (struct run_delta_rule){
        .n_heads = n_heads,
        .n_heads_k = n_heads_k,
        .width_k = layer->n_key / n_heads_k,
        .width_v = width_v,
        .n_decays = 1,
    };
    load_products(loader, hparams, layer);
    /* In files with separate products, the heads are in another order than in the checkpoint. */
    rule->keys_take_turns = layer->beta.weight.data != NULL;
    run_load_convolution(loader, "ssm_conv1d", n_channels, &layer->convolution);
    layer->dt_bias = run_load_vector(loader, "ssm_dt.bias", n_heads);
    layer->a = run_load_vector(loader, "ssm_a", n_heads);
    rule->state = run_load_state(loader, layer->n_value, rule->width_k, 0);
    run_load_norm_if(loader, "ssm_norm", RUN_NORM_RMS, hparams->norm_epsilon, width_v,
                     &layer->norm);
    run_load_linear(loader, "ssm_out", layer->n_value, hparams->n_embd, &layer->out);
}

/* qkv = the input of the convolution, z = the gates. */
static void project(const struct delta_net_layer *layer, const struct run_pass *pass,
                    const float *x, float *qkv, float *z)
{
    const size_t n = pass->n, n_heads_k = layer->rule.n_heads_k, n_key = layer->n_key;
    const size_t n_value = layer->n_value, n_channels = 2 * n_key + n_value;
    const size_t width_k = layer->rule.width_k, width_v = n_value / n_heads_k;
    const size_t row = 2 * width_k + 2 * width_v;
    float *fused;

    if (!layer->fused.weight.data) {
        run_linear_apply(&layer->qkv, 0, x, n, qkv);
        run_linear_apply(&layer->z, 0, x, n, z);
        return;
    }
    fused = run_scratch_take(pass->scratch, n * n_heads_k * row);
    run_linear_apply(&layer->fused, 0, x, n, fused);
    for (size_t i = 0; i < n; i++, fused += n_heads_k * row, qkv += n_channels, z += n_value) {
        run_copy_rows(fused, row, n_heads_k, width_k, qkv, width_k);
        run_copy_rows(fused + width_k, row, n_heads_k, width_k, qkv + n_key, width_k);
        run_copy_rows(fused + 2 * width_k, row, n_heads_k, width_v, qkv + 2 * n_key, width_v);
        run_copy_rows(fused + 2 * width_k + width_v, row, n_heads_k, width_v, z, width_v);
    }
}

/* beta and alpha: [n][heads] each, before their activations. */
static void project_steps(const struct delta_net_layer *layer, const struct run_pass *pass,
                          const float *x, float *beta, float *alpha)
{
    const size_t n = pass->n, n_heads = layer->rule.n_heads;
    const size_t n_heads_k = layer->rule.n_heads_k, width = n_heads / n_heads_k;
    float *both;

    if (!layer->beta_alpha.weight.data) {
        run_linear_apply(&layer->beta, 0, x, n, beta);
        run_linear_apply(&layer->alpha, 0, x, n, alpha);
        return;
    }
    both = run_scratch_take(pass->scratch, 2 * n * n_heads);
    run_linear_apply(&layer->beta_alpha, 0, x, n, both);
    run_copy_rows(both, 2 * width, n * n_heads_k, width, beta, width);
    run_copy_rows(both + width, 2 * width, n * n_heads_k, width, alpha, width);
}

static void activate_steps(const struct delta_net_layer *layer, size_t n, float *beta, float *alpha)
{
    for (size_t i = 0; i < n * layer->rule.n_heads; i++) {
        const size_t head = i % layer->rule.n_heads;

        beta[i] = run_sigmoid(beta[i]);
        alpha[i] = expf(layer->a[head] * run_softplus(alpha[i] + layer->dt_bias[head]));
    }
}

/* The inputs of n tokens: [n][n_channels], [n][heads], [n][heads]. */
struct inputs {
    float *qkv, *beta, *alpha;
};

/* found = the results of the heads, [n][n_value]. */
static void recur(struct delta_net_layer *layer, struct run_scratch *scratch,
                  const struct inputs *in, size_t n, float *found)
{
    const struct run_delta_rule *rule = &layer->rule;
    const size_t n_channels = layer->convolution.n_channels;
    float *convolved = run_scratch_take(scratch, n * n_channels);
    const struct run_delta_rows rows = {
        .q = convolved,
        .k = convolved + layer->n_key,
        .v = convolved + 2 * layer->n_key,
        .stride = n_channels,
        .decay = in->alpha,
        .beta = in->beta,
    };

    run_convolve(&layer->convolution, in->qkv, n_channels, n, convolved);
    run_activate(RUN_SILU, NULL, convolved, n * n_channels);
    /* Queries and keys are adjacent. */
    run_l2_norm(convolved, n, 2 * rule->n_heads_k, rule->width_k, n_channels, RUN_L2_EPSILON);
    run_delta_rule(&layer->rule, &rows, n, found);
}

static size_t n_state(const struct delta_net_layer *layer)
{
    return layer->n_value * layer->rule.width_k;
}

static size_t n_past(const struct delta_net_layer *layer)
{
    return (layer->convolution.n_taps - 1) * layer->convolution.n_channels;
}

static struct inputs kept_inputs(const struct delta_net_layer *layer)
{
    const struct kept *kept = &layer->kept;
    float *beta = kept->inputs + kept->n * layer->convolution.n_channels;

    return (struct inputs){kept->inputs, beta, beta + kept->n * layer->rule.n_heads};
}

static void keep(struct delta_net_layer *layer, struct run_scratch *scratch,
                 const struct inputs *in, size_t n)
{
    struct kept *kept = &layer->kept;
    const size_t n_channels = layer->convolution.n_channels, n_heads = layer->rule.n_heads;
    struct inputs to;

    if (!kept->memory)
        kept->memory = calloc(n_state(layer) + n_past(layer), sizeof(float));
    if (n > kept->n_room) {
        free(kept->inputs);
        kept->inputs = calloc(n * (n_channels + 2 * n_heads), sizeof(float));
        kept->n_room = kept->inputs ? n : 0;
    }
    if (!kept->memory || !kept->inputs)
        run_scratch_fail(scratch);
    kept->n = n;
    memcpy(kept->memory, layer->rule.state, n_state(layer) * sizeof(float));
    memcpy(kept->memory + n_state(layer), layer->convolution.past, n_past(layer) * sizeof(float));
    to = kept_inputs(layer);
    memcpy(to.qkv, in->qkv, n * n_channels * sizeof(float));
    memcpy(to.beta, in->beta, n * n_heads * sizeof(float));
    memcpy(to.alpha, in->alpha, n * n_heads * sizeof(float));
}

static void rewind_tokens(void *mixer, struct run_scratch *scratch, size_t n)
{
    struct delta_net_layer *layer = mixer;
    const struct run_scratch_mark mark = run_scratch_mark(scratch);
    const struct inputs in = kept_inputs(layer);
    float *found = run_scratch_take(scratch, n * layer->n_value);

    memcpy(layer->rule.state, layer->kept.memory, n_state(layer) * sizeof(float));
    memcpy(layer->convolution.past, layer->kept.memory + n_state(layer),
           n_past(layer) * sizeof(float));
    recur(layer, scratch, &in, n, found);
    run_scratch_release(scratch, mark);
}

static void free_kept(void *mixer)
{
    struct delta_net_layer *layer = mixer;

    free(layer->kept.memory);
    free(layer->kept.inputs);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct delta_net_layer *layer = mixer;
    const struct run_delta_rule *rule = &layer->rule;
    const size_t n = pass->n, n_channels = layer->convolution.n_channels;
    const struct inputs in = {.qkv = run_scratch_take(pass->scratch, n * n_channels),
                              .beta = run_scratch_take(pass->scratch, n * rule->n_heads),
                              .alpha = run_scratch_take(pass->scratch, n * rule->n_heads)};
    float *z = run_scratch_take(pass->scratch, n * layer->n_value);
    float *found = run_scratch_take(pass->scratch, n * layer->n_value);

    project(layer, pass, x, in.qkv, z);
    project_steps(layer, pass, x, in.beta, in.alpha);
    activate_steps(layer, n, in.beta, in.alpha);
    if (pass->is_draft)
        keep(layer, pass->scratch, &in, n);
    recur(layer, pass->scratch, &in, n, found);
    run_norm_apply(&layer->norm, found, n * rule->n_heads, rule->width_v, found);
    run_activate_gated(RUN_SILU, z, found, n * layer->n_value);
    run_linear_apply(&layer->out, 0, z, n, out);
}

const struct run_mixer_ops run_delta_net_mixer = {
    .n_bytes = sizeof(struct delta_net_layer),
    .load = load,
    .apply = apply,
    .rewind = rewind_tokens,
    .free = free_kept,
};
