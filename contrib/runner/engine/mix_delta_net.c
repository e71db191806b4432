/*
 * The gated delta net (Yang, Kautz and Hatamizadeh 2024) of Qwen3-Next and Qwen 3.5, and Kimi delta
 * attention (KDA, Kimi Team 2025): a delta net with a decay for each element of a key.
 */
#include "contrib/runner/compute/recurrences.h"
#include "contrib/runner/engine/mixer.h"
#include "contrib/runner/engine/recurrent_parts.h"

#include <math.h>
#include <string.h>

/* Added to the squared length of queries and keys before they are normalized. */
#define L2_EPSILON 1e-6f

struct delta_net_layer {
    size_t n_key, n_value;         /* of all heads together */
    struct run_linear qkv, z;      /* [n_embd] to the convolution's input, and to gates, or … */
    struct run_linear fused;       /* … both: for each key head q, k, v, z */
    struct run_linear beta, alpha; /* [n_embd] to one of each per head, or … */
    struct run_linear beta_alpha;  /* … both: for each key head its betas, its alphas */
    struct run_linear parts[3];    /* KDA: q, k and v instead of qkv */
    struct run_low_rank kda_alpha, kda_gate; /* KDA: instead of alpha and z */
    struct run_convolution convolution;
    const float *dt_bias, *a; /* [heads][rule.n_decays], [heads] */
    struct run_delta_rule rule;
    struct run_norm_layer norm; /* norm of each head's result */
    struct run_linear out;      /* [n_value] to [n_embd] */

    /* Kept for a rewind: the state and the convolution's past before the last pass, and the inputs
     * of its n_kept tokens. */
    struct run_cache kept_memory, kept_inputs;
    size_t n_kept;
};

static bool is_kda(const struct delta_net_layer *layer)
{
    return layer->kda_gate.up.weight.data;
}

static void load_products(struct run_loader *loader, uint64_t n_embd, struct delta_net_layer *layer)
{
    const uint64_t n_heads = layer->rule.n_heads, n_value = layer->n_value;
    const uint64_t n_channels = 2 * layer->n_key + n_value;

    run_load_linear_if(loader, "ssm_in", n_embd, n_channels + n_value, &layer->fused);
    if (!layer->fused.weight.data) {
        run_load_linear(loader, "attn_qkv", n_embd, n_channels, &layer->qkv);
        run_load_linear(loader, "attn_gate", n_embd, n_value, &layer->z);
    }
    run_load_linear_if(loader, "ssm_ba", n_embd, 2 * n_heads, &layer->beta_alpha);
    if (!layer->beta_alpha.weight.data) {
        run_load_linear(loader, "ssm_beta", n_embd, n_heads, &layer->beta);
        run_load_linear(loader, "ssm_alpha", n_embd, n_heads, &layer->alpha);
    }
}

static void load_kda_products(struct run_loader *loader, uint64_t n_embd,
                              struct delta_net_layer *layer)
{
    static const char *const names[] = {"attn_q", "attn_k", "attn_v"};
    const uint64_t n_inner = layer->n_value;

    for (size_t i = 0; i < 3; i++)
        run_load_linear(loader, names[i], n_embd, n_inner, &layer->parts[i]);
    run_low_rank_load(loader, "ssm_f_", 'a', n_embd, n_inner, 1, RUN_IDENTITY, NULL,
                      &layer->kda_alpha);
    run_low_rank_load(loader, "ssm_g_", 'a', n_embd, n_inner, 1, RUN_IDENTITY, NULL,
                      &layer->kda_gate);
    run_load_linear(loader, "ssm_beta", n_embd, layer->rule.n_heads, &layer->beta);
}

/* Set the shape of the rule. Returns false after refusing tensors that do not fit together. */
static bool find_sizes(struct run_loader *loader, uint64_t n_heads_k, bool has_kda,
                       struct delta_net_layer *layer)
{
    const uint64_t n_heads = run_load_n_elements(loader, "ssm_a");
    const uint64_t width_v = run_load_n_elements(loader, "ssm_norm.weight");
    const uint64_t n_value =
        n_heads <= RUN_MAX_CHANNELS && width_v <= RUN_MAX_CHANNELS ? n_heads * width_v : 0;
    const uint64_t n_channels =
        has_kda ? 3 * n_value : run_load_n_rows(loader, "ssm_conv1d.weight");

    if (has_kda)
        n_heads_k = n_heads;
    if (n_value == 0 || n_heads_k == 0 || n_heads % n_heads_k != 0 || n_channels <= n_value ||
        (n_channels - n_value) % (2 * n_heads_k) != 0) {
        run_loader_refuse(loader,
                          "tensors/%sssm_a, ssm_norm and ssm_conv1d: missing, too large, or shapes "
                          "that do not fit together with %llu as ssm.group_count",
                          loader->prefix, (unsigned long long)n_heads_k);
        return false;
    }
    layer->n_value = n_value;
    layer->n_key = (n_channels - n_value) / 2;
    layer->rule = (struct run_delta_rule){
        .n_heads = n_heads,
        .n_heads_k = n_heads_k,
        .width_k = layer->n_key / n_heads_k,
        .width_v = width_v,
        .n_decays = has_kda ? width_v : 1,
    };
    return true;
}

static void load(struct run_loader *loader, const struct run_mixer_place *place, void *mixer)
{
    const struct run_hparams *hparams = place->hparams;
    const bool has_kda = run_loader_has(loader, "ssm_f_a.weight");
    struct delta_net_layer *layer = mixer;
    struct run_delta_rule *rule = &layer->rule;

    if (!find_sizes(loader, hparams->ssm_groups, has_kda, layer))
        return;
    (has_kda ? load_kda_products : load_products)(loader, hparams->n_embd, layer);
    /* In files with separate products, the heads are in another order than in the checkpoint. */
    rule->keys_take_turns = layer->alpha.weight.data != NULL;
    run_load_convolution(loader, "ssm_conv1d", has_kda ? "qkv" : "",
                         2 * layer->n_key + layer->n_value, &layer->convolution);
    layer->dt_bias = run_load_vector(loader, "ssm_dt.bias", rule->n_heads * rule->n_decays);
    layer->a = run_load_vector(loader, "ssm_a", rule->n_heads);
    rule->state = run_load_state(loader, layer->n_value, rule->width_k, 0);
    run_load_norm_if(loader, "ssm_norm", RUN_NORM_RMS, hparams->norm_epsilon, rule->width_v,
                     &layer->norm);
    run_load_linear(loader, has_kda ? "attn_output" : "ssm_out", layer->n_value, hparams->n_embd,
                    &layer->out);
    run_load_cache(&loader->arena->kept, &layer->kept_memory);
    run_load_cache(&loader->arena->kept, &layer->kept_inputs);
}

/* qkv = the input of the convolution, z = the gates. */
static void project(const struct delta_net_layer *layer, const struct run_pass *pass,
                    const float *x, float *qkv, float *z)
{
    const size_t n = pass->n, n_heads_k = layer->rule.n_heads_k, n_key = layer->n_key;
    const size_t n_value = layer->n_value, n_channels = 2 * n_key + n_value;
    const size_t width_k = layer->rule.width_k, width_v = n_value / n_heads_k;
    const size_t row = 2 * width_k + 2 * width_v;
    float *product;

    if (layer->qkv.weight.data) {
        run_linear_apply(&layer->qkv, 0, x, n, qkv);
        run_linear_apply(&layer->z, 0, x, n, z);
        return;
    }
    product = run_scratch_take(pass->scratch, n * n_heads_k * row);
    if (is_kda(layer)) {
        for (size_t i = 0; i < 3; i++) {
            run_linear_apply(&layer->parts[i], 0, x, n, product);
            run_copy_rows(product, n_value, n, n_value, qkv + i * n_value, n_channels);
        }
        run_low_rank_apply(&layer->kda_gate, pass, 0, x, z);
        return;
    }
    run_linear_apply(&layer->fused, 0, x, n, product);
    for (size_t i = 0; i < n; i++, product += n_heads_k * row, qkv += n_channels, z += n_value) {
        run_copy_rows(product, row, n_heads_k, width_k, qkv, width_k);
        run_copy_rows(product + width_k, row, n_heads_k, width_k, qkv + n_key, width_k);
        run_copy_rows(product + 2 * width_k, row, n_heads_k, width_v, qkv + 2 * n_key, width_v);
        run_copy_rows(product + 2 * width_k + width_v, row, n_heads_k, width_v, z, width_v);
    }
}

/* beta: [n][heads], alpha: [n][heads][decays], before their activations. */
static void project_steps(const struct delta_net_layer *layer, const struct run_pass *pass,
                          const float *x, float *beta, float *alpha)
{
    const size_t n = pass->n, n_heads = layer->rule.n_heads;
    const size_t n_heads_k = layer->rule.n_heads_k, width = n_heads / n_heads_k;
    float *both;

    if (layer->beta.weight.data) {
        run_linear_apply(&layer->beta, 0, x, n, beta);
        if (is_kda(layer))
            run_low_rank_apply(&layer->kda_alpha, pass, 0, x, alpha);
        else
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
    const size_t n_decays = layer->rule.n_decays, row = layer->rule.n_heads * n_decays;

    for (size_t i = 0; i < n * layer->rule.n_heads; i++)
        beta[i] = run_sigmoid(beta[i]);
    for (size_t i = 0; i < n * row; i++) {
        const size_t at = i % row;

        alpha[i] = expf(layer->a[at / n_decays] * run_softplus(alpha[i] + layer->dt_bias[at]));
    }
}

/* The inputs of tokens: [n][n_channels], [n][heads], [n][heads][decays], one after the other. */
struct inputs {
    float *qkv, *beta, *alpha;
    size_t n_floats;
};

static struct inputs inputs_at(const struct delta_net_layer *layer, size_t n, float *at)
{
    const size_t n_channels = 2 * layer->n_key + layer->n_value, n_heads = layer->rule.n_heads;

    return (struct inputs){
        .qkv = at,
        .beta = at + n * n_channels,
        .alpha = at + n * (n_channels + n_heads),
        .n_floats = n * (n_channels + n_heads * (1 + layer->rule.n_decays)),
    };
}

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
    run_l2_norm(convolved, n, 2 * rule->n_heads_k, rule->width_k, n_channels, L2_EPSILON);
    run_delta_rule(&layer->rule, &rows, n, found);
}

/* Return room for n floats, in which others stay. */
static float *reserve(struct run_cache *kept, struct run_scratch *scratch, size_t n)
{
    kept->width = kept->dim = 1;
    if (run_cache_reserve(kept, n) < 0)
        run_scratch_fail(scratch);
    return kept->rows;
}

/* Copy the state and the convolution's past to the kept memory, or back. */
static void copy_memory(struct delta_net_layer *layer, struct run_scratch *scratch, bool is_back)
{
    const struct run_convolution *convolution = &layer->convolution;
    const size_t n_past = (convolution->n_taps - 1) * convolution->n_channels;
    const size_t n_state = layer->n_value * layer->rule.width_k;
    float *kept = reserve(&layer->kept_memory, scratch, n_state + n_past);
    float *state = layer->rule.state, *past = convolution->past;

    memcpy(is_back ? state : kept, is_back ? kept : state, n_state * sizeof *kept);
    kept += n_state;
    memcpy(is_back ? past : kept, is_back ? kept : past, n_past * sizeof *kept);
}

static void rewind_tokens(void *mixer, struct run_scratch *scratch, size_t n)
{
    struct delta_net_layer *layer = mixer;
    const struct run_scratch_mark mark = run_scratch_mark(scratch);
    const struct inputs in = inputs_at(layer, layer->n_kept, layer->kept_inputs.rows);

    copy_memory(layer, scratch, true);
    recur(layer, scratch, &in, n, run_scratch_take(scratch, n * layer->n_value));
    run_scratch_release(scratch, mark);
}

static void apply(void *mixer, const struct run_pass *pass, const float *x, float *out)
{
    struct delta_net_layer *layer = mixer;
    const size_t n = pass->n, n_inputs = inputs_at(layer, n, NULL).n_floats;
    float *memory = run_scratch_take(pass->scratch, n_inputs);
    const struct inputs in = inputs_at(layer, n, memory);
    float *z = run_scratch_take(pass->scratch, n * layer->n_value);
    float *found = run_scratch_take(pass->scratch, n * layer->n_value);

    project(layer, pass, x, in.qkv, z);
    project_steps(layer, pass, x, in.beta, in.alpha);
    activate_steps(layer, n, in.beta, in.alpha);
    if (pass->is_draft) {
        copy_memory(layer, pass->scratch, false);
        memcpy(reserve(&layer->kept_inputs, pass->scratch, n_inputs), memory,
               n_inputs * sizeof *memory);
        layer->n_kept = n;
    }
    recur(layer, pass->scratch, &in, n, found);
    run_norm_apply(&layer->norm, found, n * layer->rule.n_heads, layer->rule.width_v, found);
    if (is_kda(layer))
        for (size_t i = 0; i < n * layer->n_value; i++)
            z[i] = found[i] * run_sigmoid(z[i]);
    else
        run_activate_gated(RUN_SILU, z, found, n * layer->n_value);
    run_linear_apply(&layer->out, 0, z, n, out);
}

const struct run_mixer_ops run_delta_net_mixer = {
    .n_bytes = sizeof(struct delta_net_layer),
    .load = load,
    .apply = apply,
    .rewind = rewind_tokens,
};
