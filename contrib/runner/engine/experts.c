#include "contrib/runner/engine/feed_forward.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The smallest divisor of weights: the smallest normal half, as in ggml. */
#define LEAST_SUM 6.103515625e-5f

static void load_router(struct run_loader *loader, const struct run_hparams *hparams,
                        struct run_experts *experts)
{
    const uint64_t n = hparams->experts.n, n_embd = hparams->n_embd;

    if (run_load_n_elements(loader, "ffn_gate_inp.scale") == n_embd && n_embd > 1) {
        experts->router_scale = run_load_vector(loader, "ffn_gate_inp.scale", n_embd);
        run_load_weight(loader, "ffn_gate_inp", n_embd, n, 1, &experts->router);
    } else {
        run_load_linear(loader, "ffn_gate_inp", n_embd, n, &experts->router);
    }
    experts->selection_bias = run_load_vector_if(loader, "exp_probs_b.bias", n);
    if (!experts->selection_bias)
        experts->selection_bias = run_load_vector_if(loader, "exp_probs_b", n);
}

void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, struct run_experts *experts)
{
    const uint64_t n = hparams->experts.n, n_embd = hparams->n_embd;
    const uint64_t n_narrow = run_load_n_rows(loader, "ffn_latent_down.weight");

    if (n == 0) {
        run_loader_refuse(loader,
                          "tensors/%sffn_gate_inp.weight: a router, but the metadata have no "
                          "expert_count",
                          loader->prefix);
        return;
    }
    if (run_load_n_elements(loader, "ffn_down_exps.weight") == 0) {
        run_loader_miss(loader, "ffn_down_exps.weight");
        return;
    }
    load_router(loader, hparams, experts);
    run_load_stream_norm_if(loader, hparams, "ffn_norm_exps", &experts->norm);
    if (!experts->norm.is_there)
        run_load_stream_norm_if(loader, hparams, "pre_ffw_norm_2", &experts->norm);
    run_load_stream_norm_if(loader, hparams, "post_ffw_norm_2", &experts->post_norm);
    experts->width = n_narrow ? n_narrow : n_embd;
    if (n_narrow) {
        run_load_linear(loader, "ffn_latent_down", n_embd, n_narrow, &experts->narrow);
        run_load_linear(loader, "ffn_latent_up", n_narrow, n_embd, &experts->widen);
    }
    run_ffn_load(loader, hparams, n, experts->width, "_exps", &experts->networks);
    experts->networks.clamp = shape->clamp_experts;
    if (hparams->experts.n_chunks > 0)
        run_ffn_load(loader, hparams, hparams->experts.n_chunks, experts->width, "_chexps",
                     &experts->chunks);
}

/* An expert chosen for a token. */
struct choice {
    uint32_t expert;
    uint32_t token;
    float weight;
};

/*
 * Map NaN and -infinity to the lowest float, because -infinity marks chosen experts. No token can
 * then choose an expert twice, whatever the model computes.
 */
static float comparable(float x)
{
    return x >= -FLT_MAX ? x : -FLT_MAX;
}

/* Sets all groups but the best to -infinity. A group is rated by the sum of its two best experts.
 */
static void choose_groups(const struct run_experts_shape *shape, float *selection, float *sums)
{
    const size_t width = shape->n / shape->n_groups;

    for (size_t group = 0; group < shape->n_groups; group++) {
        const float *members = selection + group * width;
        float first = -INFINITY, second = -INFINITY;

        for (size_t i = 0; i < width; i++) {
            if (members[i] > first) {
                second = first;
                first = members[i];
            } else if (members[i] > second) {
                second = members[i];
            }
        }
        sums[group] = comparable(width > 1 ? first + second : first);
    }
    for (size_t used = 0; used < shape->n_groups_used; used++)
        sums[run_find_highest(sums, shape->n_groups)] = -INFINITY;
    for (size_t group = 0; group < shape->n_groups; group++)
        if (sums[group] != -INFINITY)
            for (size_t i = 0; i < width; i++)
                selection[group * width + i] = -INFINITY;
}

/* Turns the scores of a token into probabilities, and into the numbers by which experts are
 * selected. */
static void rate(const struct run_experts *experts, const struct run_experts_shape *shape,
                 const float *scores, float *probabilities, float *selection)
{
    memcpy(probabilities, scores, shape->n * sizeof *scores);
    if (shape->gating == RUN_GATE_SOFTMAX)
        run_softmax(probabilities, shape->n);
    else if (shape->gating == RUN_GATE_SIGMOID)
        for (size_t i = 0; i < shape->n; i++)
            probabilities[i] = run_sigmoid(scores[i]);
    for (size_t i = 0; i < shape->n; i++)
        selection[i] = comparable(probabilities[i] +
                                  (experts->selection_bias ? experts->selection_bias[i] : 0));
}

static void finish_weights(const struct run_experts_shape *shape, struct choice *choices, size_t n)
{
    float sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += choices[i].weight;
    for (size_t i = 0; i < n; i++) {
        if (shape->weights_normed)
            choices[i].weight /= fmaxf(sum, LEAST_SUM);
        choices[i].weight *= shape->weights_scale;
    }
}

/* Chooses n_used experts for a token, the best first. `work` has room for 3 n floats. */
static void choose(const struct run_experts *experts, const struct run_experts_shape *shape,
                   const float *scores, uint32_t token, float *work, struct choice *choices)
{
    float *probabilities = work, *selection = work + shape->n, *rest = selection + shape->n;

    rate(experts, shape, scores, probabilities, selection);
    if (shape->n_groups > 1)
        choose_groups(shape, selection, rest);
    for (size_t i = 0; i < shape->n_used; i++) {
        const size_t best = run_find_highest(selection, shape->n);

        choices[i] = (struct choice){(uint32_t)best, token, probabilities[best]};
        selection[best] = -INFINITY;
        rest[i] = probabilities[best];
    }
    if (shape->gating == RUN_GATE_SOFTMAX_WEIGHT) {
        run_softmax(rest, shape->n_used);
        for (size_t i = 0; i < shape->n_used; i++)
            choices[i].weight = rest[i];
    }
    finish_weights(shape, choices, shape->n_used);
}

static size_t n_chunks_used(const struct run_experts_shape *shape)
{
    return shape->n_used < shape->n_chunks ? shape->n_used : shape->n_chunks;
}

/* Chooses the chunks of a token's best experts. A chunk's weight is the weight of the expert with
 * the chunk's index, as in llama.cpp. */
static void choose_chunks(const struct run_experts_shape *shape, const float *probabilities,
                          const struct choice *best, struct choice *choices)
{
    const size_t n = n_chunks_used(shape);

    for (size_t i = 0; i < n; i++) {
        const uint32_t chunk = best[i].expert / shape->per_chunk;

        choices[i] = (struct choice){chunk, best[i].token, probabilities[chunk]};
    }
    finish_weights(shape, choices, n);
}

static int compare_experts(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;

    if (left->expert != right->expert)
        return left->expert < right->expert ? -1 : 1;
    return left->token < right->token ? -1 : left->token > right->token;
}

/* Adds the output of one network for the tokens that chose it. */
static void apply_one(const struct run_ffn *networks, const struct run_pass *pass,
                      const struct choice *choices, size_t n, size_t width, const float *x,
                      float *out)
{
    const bool weighs_input = pass->hparams->architecture->layers & RUN_WEIGHTS_BEFORE;
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    float *in = run_scratch_take(pass->scratch, n * width);
    float *result = run_scratch_take(pass->scratch, n * width);

    for (size_t i = 0; i < n; i++) {
        const float *row = x + choices[i].token * width;
        const float weight = weighs_input ? choices[i].weight : 1;

        for (size_t j = 0; j < width; j++)
            in[i * width + j] = row[j] * weight;
    }
    run_ffn_apply(networks, pass, choices[0].expert, in, n, result);
    for (size_t i = 0; i < n; i++) {
        float *row = out + choices[i].token * width;
        const float weight = weighs_input ? 1 : choices[i].weight;

        for (size_t j = 0; j < width; j++)
            row[j] += weight * result[i * width + j];
    }
    run_scratch_release(pass->scratch, mark);
}

/* out = the sum of the chosen networks' outputs for x. A token may choose a network several times.
 */
static void apply_choices(const struct run_ffn *networks, const struct run_pass *pass,
                          struct choice *choices, size_t n_choices, size_t width, const float *x,
                          float *out)
{
    /* All tokens of an expert are computed together, so that its weights are decoded once. */
    qsort(choices, n_choices, sizeof *choices, compare_experts);
    memset(out, 0, pass->n * width * sizeof *out);
    for (size_t first = 0, end; first < n_choices; first = end) {
        for (end = first + 1; end < n_choices && choices[end].expert == choices[first].expert;)
            end++;
        apply_one(networks, pass, choices + first, end - first, width, x, out);
    }
}

static const float *router_input(const struct run_experts *experts, const struct run_pass *pass,
                                 const struct run_feed_forward_input *in, const float *x)
{
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    const float scale = 1 / sqrtf((float)n_embd);
    float *scaled;

    if (pass->hparams->architecture->layers & RUN_ROUTER_TAKES_INPUT)
        return in->layer;
    if (!experts->router_scale)
        return x;
    scaled = run_scratch_take(pass->scratch, n * n_embd);
    memcpy(scaled, in->residual, n * n_embd * sizeof *scaled);
    run_norm(RUN_NORM_RMS, pass->hparams->norm_epsilon, scaled, n, n_embd, n_embd, NULL, NULL, 1,
             scaled);
    for (size_t i = 0; i < n * n_embd; i++)
        scaled[i] *= scale * experts->router_scale[i % n_embd];
    return scaled;
}

/* The experts' input, with their own norm if they have one. */
static const float *norm_input(const struct run_experts *experts, const struct run_pass *pass,
                               const struct run_feed_forward_input *in)
{
    const bool is_layer_input = pass->hparams->architecture->layers & RUN_EXPERTS_TAKE_INPUT;
    const size_t n = pass->n, n_embd = pass->hparams->n_embd;
    float *normed;

    if (!experts->norm.is_there)
        return in->normed;
    normed = run_scratch_take(pass->scratch, n * n_embd);
    run_norm_apply(&experts->norm, is_layer_input ? in->layer : in->residual, n, n_embd, normed);
    return normed;
}

/* out = the sums of the networks' outputs for x, both [n][n_embd]. */
static void apply_networks(const struct run_experts *experts, const struct run_pass *pass,
                           struct choice *choices, struct choice *of_chunks, const float *x,
                           float *out)
{
    const struct run_experts_shape *shape = &pass->hparams->experts;
    const size_t n = pass->n, width = experts->width;
    const bool is_narrow = experts->narrow.weight.data;
    float *narrowed = run_scratch_take(pass->scratch, is_narrow ? n * width : 0);
    float *sums = is_narrow ? run_scratch_take(pass->scratch, n * width) : out;

    if (is_narrow)
        run_linear_apply(&experts->narrow, 0, x, n, narrowed);
    apply_choices(&experts->networks, pass, choices, n * shape->n_used, width,
                  is_narrow ? narrowed : x, sums);
    if (shape->n_chunks > 0) {
        float *more = run_scratch_take(pass->scratch, n * width);

        apply_choices(&experts->chunks, pass, of_chunks, n * n_chunks_used(shape), width, sums,
                      more);
        for (size_t i = 0; i < n * width; i++)
            sums[i] += more[i] * shape->chunk_scale;
    }
    if (is_narrow)
        run_linear_apply(&experts->widen, 0, sums, n, out);
}

void run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                       const struct run_feed_forward_input *in, float *out)
{
    const struct run_experts_shape *shape = &pass->hparams->experts;
    const size_t n = pass->n, n_used = shape->n_used, n_chunks = n_chunks_used(shape);
    const float *x = norm_input(experts, pass, in);
    float *scores = run_scratch_take(pass->scratch, n * shape->n);
    float *work = run_scratch_take(pass->scratch, 3 * (size_t)shape->n);
    struct choice *choices = (void *)run_scratch_take(
        pass->scratch, n * (n_used + n_chunks) * (sizeof *choices / sizeof(float)));
    struct choice *of_chunks = choices + n * n_used;

    run_linear_apply(&experts->router, 0, router_input(experts, pass, in, x), n, scores);
    for (size_t i = 0; i < n; i++) {
        choose(experts, shape, scores + i * shape->n, (uint32_t)i, work, choices + i * n_used);
        if (n_chunks > 0)
            choose_chunks(shape, work, choices + i * n_used, of_chunks + i * n_chunks);
    }
    apply_networks(experts, pass, choices, of_chunks, x, out);
    run_norm_apply(&experts->post_norm, out, n, pass->hparams->n_embd, out);
}
