#include "contrib/runner/engine/feed_forward.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The least that a sum of weights is taken for: the smallest normal half, as ggml has it. */
#define LEAST_SUM 6.103515625e-5f

void run_experts_load(struct run_loader *loader, const struct run_hparams *hparams,
                      struct run_experts *experts)
{
    const uint64_t n = hparams->experts.n, n_embd = hparams->n_embd;
    struct run_network *networks = &experts->networks;
    const uint64_t elements = run_load_n_elements(loader, "ffn_down_exps.weight");
    const uint64_t n_narrow = run_load_n_rows(loader, "ffn_latent_down.weight");
    uint64_t width;

    if (n == 0 || elements == 0) {
        run_loader_refuse(loader,
                          n == 0 ? "metadata.json: expert_count is missing, but %s is there"
                                 : "%sffn_down_exps.weight: missing",
                          n == 0 ? "ffn_gate_inp" : loader->prefix);
        return;
    }
    run_load_linear(loader, "ffn_gate_inp", n_embd, n, &experts->router);
    experts->selection = run_load_vector_if(loader, "exp_probs_b.bias", n);
    if (!experts->selection)
        experts->selection = run_load_vector_if(loader, "exp_probs_b", n);
    width = n_narrow ? n_narrow : n_embd;
    if (n_narrow) {
        run_load_linear(loader, "ffn_latent_down", n_embd, width, &experts->narrow);
        run_load_linear(loader, "ffn_latent_up", width, n_embd, &experts->widen);
    }
    experts->width = width;
    networks->n_ff = elements / n / width;
    networks->activation = hparams->architecture->activation;
    run_load_linears(loader, "ffn_down_exps", networks->n_ff, width, n, &networks->down);
    if (run_loader_has(loader, "ffn_gate_up_exps.weight")) {
        run_load_linears(loader, "ffn_gate_up_exps", width, 2 * networks->n_ff, n,
                         &networks->gate_up);
        return;
    }
    if (run_loader_has(loader, "ffn_gate_exps.weight"))
        run_load_linears(loader, "ffn_gate_exps", width, networks->n_ff, n, &networks->gate);
    run_load_linears(loader, "ffn_up_exps", width, networks->n_ff, n, &networks->up);
}

/* One expert that a token goes to. */
struct choice {
    uint32_t expert;
    uint32_t token;
    float weight;
};

/* The index of the highest of n numbers; the first of equals. */
static size_t highest(const float *x, size_t n)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

/*
 * A number to compare: one that is none, or -infinity, becomes the lowest, since -infinity marks
 * what has been chosen. So no token gets an expert twice, whatever the model computes.
 */
static float comparable(float x)
{
    return x >= -FLT_MAX ? x : -FLT_MAX;
}

/* Leaves -infinity in all groups but the best, which are those whose two best experts sum to most.
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
        sums[highest(sums, shape->n_groups)] = -INFINITY;
    for (size_t group = 0; group < shape->n_groups; group++)
        if (sums[group] != -INFINITY)
            for (size_t i = 0; i < width; i++)
                selection[group * width + i] = -INFINITY;
}

/* Turns the scores of a token into probabilities and those by which experts are chosen. */
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
        selection[i] =
            comparable(probabilities[i] + (experts->selection ? experts->selection[i] : 0));
}

/* The n_used choices of a token. `work` has room for 3 n floats. */
static void choose(const struct run_experts *experts, const struct run_experts_shape *shape,
                   const float *scores, uint32_t token, float *work, struct choice *choices)
{
    float *probabilities = work, *selection = work + shape->n;
    float sum = 0;

    rate(experts, shape, scores, probabilities, selection);
    if (shape->n_groups > 1)
        choose_groups(shape, selection, work + 2 * shape->n);
    for (size_t i = 0; i < shape->n_used; i++) {
        const size_t best = highest(selection, shape->n);

        choices[i] = (struct choice){(uint32_t)best, token, probabilities[best]};
        selection[best] = -INFINITY;
        work[2 * shape->n + i] = probabilities[best];
    }
    if (shape->gating == RUN_GATE_SOFTMAX_CHOSEN) {
        run_softmax(work + 2 * shape->n, shape->n_used);
        for (size_t i = 0; i < shape->n_used; i++)
            choices[i].weight = work[2 * shape->n + i];
    }
    for (size_t i = 0; i < shape->n_used; i++)
        sum += choices[i].weight;
    for (size_t i = 0; i < shape->n_used; i++) {
        if (shape->weights_normed)
            choices[i].weight /= fmaxf(sum, LEAST_SUM);
        choices[i].weight *= shape->weights_scale;
    }
}

static int compare_experts(const void *a, const void *b)
{
    const struct choice *left = a, *right = b;

    if (left->expert != right->expert)
        return left->expert < right->expert ? -1 : 1;
    return left->token < right->token ? -1 : left->token > right->token;
}

/* One expert for the tokens that chose it. */
static int apply_expert(const struct run_experts *experts, const struct run_pass *pass,
                        const struct choice *choices, size_t n, const float *x, float *in,
                        float *result, float *out)
{
    const size_t width = experts->width;
    const bool weighs_input = pass->hparams->architecture->weighs_input;
    int code;

    for (size_t i = 0; i < n; i++) {
        const float *row = x + choices[i].token * width;
        const float weight = weighs_input ? choices[i].weight : 1;

        for (size_t j = 0; j < width; j++)
            in[i * width + j] = row[j] * weight;
    }
    code = run_network_apply(&experts->networks, pass, choices[0].expert, in, n, result);
    if (code < 0)
        return code;
    for (size_t i = 0; i < n; i++) {
        float *row = out + choices[i].token * width;
        const float weight = weighs_input ? 1 : choices[i].weight;

        for (size_t j = 0; j < width; j++)
            row[j] += weight * result[i * width + j];
    }
    return 0;
}

int run_experts_apply(const struct run_experts *experts, const struct run_pass *pass,
                      const float *x, float *out)
{
    const struct run_experts_shape *shape = &pass->hparams->experts;
    const size_t n = pass->n, width = experts->width, n_choices = n * shape->n_used;
    const bool is_narrow = experts->narrow.weight.data;
    float *scores = run_scratch_take(pass->scratch, n * shape->n);
    float *work = run_scratch_take(pass->scratch, 3 * (size_t)shape->n);
    float *in = run_scratch_take(pass->scratch, n * width);
    float *result = run_scratch_take(pass->scratch, n * width);
    float *narrowed = is_narrow ? run_scratch_take(pass->scratch, n * width) : NULL;
    float *sums = is_narrow ? run_scratch_take(pass->scratch, n * width) : out;
    struct choice *choices = malloc(n_choices * sizeof *choices);
    int code = 0;

    if (!scores || !work || !in || !result || !choices || !sums || (is_narrow && !narrowed)) {
        free(choices);
        return -ENOMEM;
    }
    run_linear_apply(&experts->router, 0, x, n, scores);
    for (size_t i = 0; i < n; i++)
        choose(experts, shape, scores + i * shape->n, (uint32_t)i, work,
               choices + i * shape->n_used);
    /* All tokens of an expert together: its weights are decoded once. */
    qsort(choices, n_choices, sizeof *choices, compare_experts);
    if (is_narrow)
        run_linear_apply(&experts->narrow, 0, x, n, narrowed);
    memset(sums, 0, n * width * sizeof *sums);
    for (size_t first = 0, end; first < n_choices && code == 0; first = end) {
        for (end = first + 1; end < n_choices && choices[end].expert == choices[first].expert;)
            end++;
        code = apply_expert(experts, pass, choices + first, end - first, is_narrow ? narrowed : x,
                            in, result, sums);
    }
    free(choices);
    if (is_narrow && code == 0)
        run_linear_apply(&experts->widen, 0, sums, n, out);
    return code;
}
