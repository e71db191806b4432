/*
 * Feed-forward layers of the runner, dense and with experts, compared with a reference in double.
 */
#include "contrib/runner/engine/feed_forward.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N_EMBD = 12, N_FF = 20, N_TOKENS = 9, N_EXPERTS = 8, N_SHARED = 10 };

static struct run_files files;
static struct run_architecture architecture;
static struct gguf_layer_shape shape;
static struct run_hparams hparams;

static void begin(void)
{
    run_files_make(&files);
    run_files_metadata(&files, "{}");
    architecture = (struct run_architecture){.names = "test"};
    hparams = (struct run_hparams){.architecture = &architecture,
                                   .n_layer = 1,
                                   .n_embd = N_EMBD,
                                   .norm_epsilon = 1e-5f,
                                   .layers = &shape,
                                   .experts.weights_scale = 1};
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_feed_forward, .init = begin, .fini = end);
TestSuite(run_experts, .init = begin, .fini = end);

static double silu(double x)
{
    return x / (1 + exp(-x));
}

/* Apply the layer to N_TOKENS rows at once, and check that each row alone gives the same bits. */
static void apply(const float *x, float *out)
{
    struct run_feed_forward layer = {0};
    struct run_part part;
    struct run_pass pass = {.hparams = &hparams, .n = N_TOKENS};
    float alone[N_EMBD];

    run_part_open(&files, &part);
    run_feed_forward_load(&part.loader, &hparams, &shape, &layer);
    cr_assert_eq(part.loader.code, 0, "%s", part.failure.text);
    cr_assert(layer.is_there);
    pass.scratch = &part.scratch;
    run_feed_forward_apply(&layer, &pass, &(struct run_feed_forward_input){x, x, x}, out);
    pass.n = 1;
    for (size_t i = 0; i < N_TOKENS; i++) {
        const float *row = x + i * N_EMBD;

        run_feed_forward_apply(&layer, &pass, &(struct run_feed_forward_input){row, row, row},
                               alone);
        numbers_expect_same("a token alone", alone, out + i * N_EMBD, N_EMBD);
    }
    run_part_close(&part);
}

static void expect_refused(int code, const char *pattern)
{
    struct run_feed_forward layer = {0};
    struct run_part part;

    run_part_open(&files, &part);
    run_feed_forward_load(&part.loader, &hparams, &shape, &layer);
    cr_expect_eq(part.loader.code, code, "%s", part.failure.text);
    cr_expect_not_null(strstr(part.failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       part.failure.text, pattern);
    run_part_close(&part);
}

/* Compute down(silu(gate(x)) · up(x)), or down(silu(up(x))) if `gate` is NULL. */
static void network(const float *gate, const float *up, const float *down, size_t n_ff,
                    const double *x, double *out)
{
    double g[N_FF], u[N_FF];

    numbers_multiply(up, n_ff, N_EMBD, x, u);
    if (gate)
        numbers_multiply(gate, n_ff, N_EMBD, x, g);
    for (size_t i = 0; i < n_ff; i++)
        u[i] = gate ? silu(g[i]) * u[i] : silu(u[i]);
    numbers_multiply(down, N_EMBD, n_ff, u, out);
}

static void as_doubles(const float *x, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (double)x[i];
}

static void expect_network(const float *gate, const float *up, const float *down)
{
    float *x = numbers_make(&files.random, 1, N_TOKENS * N_EMBD);
    float *out = numbers_alloc(N_TOKENS * N_EMBD, sizeof *out);
    double row[N_EMBD], expected[N_EMBD];

    apply(x, out);
    for (size_t i = 0; i < N_TOKENS; i++) {
        as_doubles(x + i * N_EMBD, N_EMBD, row);
        network(gate, up, down, N_FF, row, expected);
        numbers_expect_near("feed-forward", out + i * N_EMBD, expected, N_EMBD, 2e-6);
    }
    free(x);
    free(out);
}

Test(run_feed_forward, with_and_without_gate)
{
    const float *up = run_files_random(&files, "ffn_up.weight", N_EMBD, N_FF, 0, 1);
    const float *down = run_files_random(&files, "ffn_down.weight", N_FF, N_EMBD, 0, 1);

    expect_network(NULL, up, down);
    expect_network(run_files_random(&files, "ffn_gate.weight", N_EMBD, N_FF, 0, 1), up, down);
}

Test(run_feed_forward, fused_gate_and_up)
{
    const float *both = run_files_random(&files, "ffn_up.weight", N_EMBD, 2 * (uint64_t)N_FF, 0, 1);
    const float *down = run_files_random(&files, "ffn_down.weight", N_FF, N_EMBD, 0, 1);

    expect_network(both, both + N_EMBD * N_FF, down);
}

Test(run_feed_forward, biases_scales_and_a_norm)
{
    const float *up = run_files_random(&files, "ffn_up.weight", N_EMBD, N_FF, 0, 1);
    const float *down = run_files_random(&files, "ffn_down.weight", N_FF, N_EMBD, 0, 1);
    const float *up_bias = run_files_random(&files, "ffn_up.bias", N_FF, 0, 0, 1);
    const float *down_bias = run_files_random(&files, "ffn_down.bias", N_EMBD, 0, 0, 1);
    const float *norm = run_files_random(&files, "ffn_sub_norm.weight", N_FF, 0, 0, 1);
    const float up_scale = 1.5f, down_scale = 0.25f;
    float *x = numbers_make(&files.random, 1, N_TOKENS * N_EMBD);
    float *out = numbers_alloc(N_TOKENS * N_EMBD, sizeof *out);
    double row[N_EMBD], middle[N_FF], expected[N_EMBD];

    run_files_floats(&files, "ffn_up.scale", 1, 0, 0, &up_scale);
    run_files_floats(&files, "ffn_down.scale", 1, 0, 0, &down_scale);
    apply(x, out);
    for (size_t i = 0; i < N_TOKENS; i++) {
        double squares = 0;

        as_doubles(x + i * N_EMBD, N_EMBD, row);
        numbers_multiply(up, N_FF, N_EMBD, row, middle);
        for (size_t j = 0; j < N_FF; j++) {
            middle[j] = silu(middle[j] * (double)up_scale + (double)up_bias[j]);
            squares += middle[j] * middle[j] / N_FF;
        }
        for (size_t j = 0; j < N_FF; j++)
            middle[j] = middle[j] / sqrt(squares + (double)hparams.norm_epsilon) * (double)norm[j];
        numbers_multiply(down, N_EMBD, N_FF, middle, expected);
        for (size_t j = 0; j < N_EMBD; j++)
            expected[j] = expected[j] * (double)down_scale + (double)down_bias[j];
        numbers_expect_near("feed-forward", out + i * N_EMBD, expected, N_EMBD, 2e-6);
    }
    free(x);
    free(out);
}

Test(run_feed_forward, wrong_shapes_are_refused)
{
    run_files_random(&files, "ffn_up.weight", N_EMBD, N_FF, 0, 1);
    expect_refused(-ENOENT, "tensors/ffn_down.weight: missing");
    run_files_random(&files, "ffn_down.weight", N_FF, N_EMBD + 1, 0, 1);
    expect_refused(-EINVAL, "tensors/ffn_down.weight: shape");
    run_files_random(&files, "ffn_down.weight", N_FF + 1, N_EMBD, 0, 1);
    expect_refused(-EINVAL, "tensors/ffn_up.weight: shape [12, 20, 1] (ne), expected [12, 21, 1]");
    run_files_random(&files, "ffn_down.weight", N_FF, N_EMBD, 0, 1);
    run_files_random(&files, "ffn_up.bias", N_FF + 1, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/ffn_up.bias: 21 elements, expected 20");
    run_files_random(&files, "ffn_up.bias", N_FF, 0, 0, 1);
    run_files_random(&files, "ffn_up.scale", 2, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/ffn_up.scale: 2 elements, expected 1");
}

/* ---- experts ---- */

/* Tensors that a test selects. The weights are in the tree. */
static struct {
    bool has_gate, is_fused, has_selection, has_shared, has_shared_gate, has_scales;
} kind;

static void make_experts(void)
{
    run_files_random(&files, "ffn_gate_inp.weight", N_EMBD, N_EXPERTS, 0, 1);
    run_files_random(&files, "ffn_down_exps.weight", N_FF, N_EMBD, N_EXPERTS, 1);
    if (kind.is_fused) {
        run_files_random(&files, "ffn_gate_up_exps.weight", N_EMBD, 2 * (uint64_t)N_FF, N_EXPERTS,
                         1);
    } else {
        run_files_random(&files, "ffn_up_exps.weight", N_EMBD, N_FF, N_EXPERTS, 1);
        if (kind.has_gate)
            run_files_random(&files, "ffn_gate_exps.weight", N_EMBD, N_FF, N_EXPERTS, 1);
    }
    if (kind.has_scales)
        run_files_random(&files, "ffn_down_exps.scale", N_EXPERTS, 0, 0, 1);
    if (kind.has_selection)
        run_files_random(&files, "exp_probs_b.bias", N_EXPERTS, 0, 0, 0.5f);
    if (kind.has_shared) {
        run_files_random(&files, "ffn_gate_shexp.weight", N_EMBD, N_SHARED, 0, 1);
        run_files_random(&files, "ffn_up_shexp.weight", N_EMBD, N_SHARED, 0, 1);
        run_files_random(&files, "ffn_down_shexp.weight", N_SHARED, N_EMBD, 0, 1);
    }
    if (kind.has_shared_gate)
        run_files_random(&files, "ffn_gate_inp_shexp.weight", N_EMBD, 0, 0, 1);
}

/* Return true if x[index] is among the n_best largest. Of equal values, the first is larger. */
static bool is_among(const double *x, size_t n, size_t index, size_t n_best)
{
    size_t n_better = 0;

    for (size_t i = 0; i < n; i++)
        n_better += x[i] > x[index] || (x[i] == x[index] && i < index);
    return n_better < n_best;
}

/* Choose the experts with the largest values, limited to the best groups. */
static void choose(const double *by, bool *chosen)
{
    const struct run_experts_shape *e = &hparams.experts;
    const size_t n_groups = e->n_groups > 1 ? e->n_groups : 1, width = e->n / n_groups;
    double sums[N_EXPERTS], left[N_EXPERTS];

    for (size_t g = 0; g < n_groups; g++) {
        sums[g] = 0;
        for (size_t i = 0; i < width; i++)
            if (is_among(by + g * width, width, i, 2))
                sums[g] += by[g * width + i];
    }
    for (size_t i = 0; i < e->n; i++)
        left[i] = n_groups == 1 || is_among(sums, n_groups, i / width, e->n_groups_used)
                      ? by[i]
                      : -INFINITY;
    for (size_t i = 0; i < e->n; i++)
        chosen[i] = is_among(left, e->n, i, e->n_used);
}

/* Compute the weight of each expert for a token, 0 for experts that are not chosen. */
static void weigh(const double *x, double *weights)
{
    const struct run_experts_shape *e = &hparams.experts;
    const float *selection = run_files_values(&files, "exp_probs_b.bias");
    double scores[N_EXPERTS], by[N_EXPERTS], sum = 0;
    bool chosen[N_EXPERTS];

    numbers_multiply(run_files_values(&files, "ffn_gate_inp.weight"), e->n, N_EMBD, x, scores);
    for (size_t i = 0; i < e->n; i++)
        sum += exp(scores[i]);
    for (size_t i = 0; i < e->n; i++) {
        weights[i] = e->gating == RUN_GATE_SOFTMAX   ? exp(scores[i]) / sum
                     : e->gating == RUN_GATE_SIGMOID ? 1 / (1 + exp(-scores[i]))
                                                     : scores[i];
        by[i] = weights[i] + (selection ? (double)selection[i] : 0);
    }
    choose(by, chosen);
    sum = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (e->gating == RUN_GATE_SOFTMAX_WEIGHT)
            weights[i] = exp(weights[i]);
        weights[i] = chosen[i] ? weights[i] : 0;
        sum += weights[i];
    }
    for (size_t i = 0; i < e->n; i++) {
        if (e->weights_normed || e->gating == RUN_GATE_SOFTMAX_WEIGHT)
            weights[i] /= sum;
        weights[i] *= (double)e->weights_scale;
    }
}

static void experts_reference(const double *x, double *out)
{
    const float *both = run_files_values(&files, "ffn_gate_up_exps.weight");
    const float *gate = run_files_values(&files, "ffn_gate_exps.weight");
    const float *up = run_files_values(&files, "ffn_up_exps.weight");
    const float *down = run_files_values(&files, "ffn_down_exps.weight");
    const float *scales = run_files_values(&files, "ffn_down_exps.scale");
    const float *shared_gate = run_files_values(&files, "ffn_gate_inp_shexp.weight");
    const size_t size = N_EMBD * N_FF;
    double weights[N_EXPERTS], in[N_EMBD], part[N_EMBD], open = 0;

    weigh(x, weights);
    memset(out, 0, N_EMBD * sizeof *out);
    for (size_t i = 0; i < N_EXPERTS; i++) {
        for (size_t j = 0; j < N_EMBD; j++)
            in[j] = architecture.layers & RUN_WEIGHTS_BEFORE ? weights[i] * x[j] : x[j];
        network(both   ? both + 2 * i * size
                : gate ? gate + i * size
                       : NULL,
                both ? both + (2 * i + 1) * size : up + i * size, down + i * size, N_FF, in, part);
        for (size_t j = 0; j < N_EMBD; j++)
            if (weights[i] != 0)
                out[j] += part[j] * (scales ? (double)scales[i] : 1) *
                          ((architecture.layers & RUN_WEIGHTS_BEFORE) ? 1 : weights[i]);
    }
    if (!kind.has_shared)
        return;
    network(run_files_values(&files, "ffn_gate_shexp.weight"),
            run_files_values(&files, "ffn_up_shexp.weight"),
            run_files_values(&files, "ffn_down_shexp.weight"), N_SHARED, x, part);
    for (size_t j = 0; shared_gate && j < N_EMBD; j++)
        open += (double)shared_gate[j] * x[j];
    for (size_t j = 0; j < N_EMBD; j++)
        out[j] += part[j] * (shared_gate ? 1 / (1 + exp(-open)) : 1);
}

static void check_experts(void)
{
    float *x = numbers_make(&files.random, 1, N_TOKENS * N_EMBD);
    float *out = numbers_alloc(N_TOKENS * N_EMBD, sizeof *out);
    double row[N_EMBD], expected[N_EMBD];

    apply(x, out);
    for (size_t i = 0; i < N_TOKENS; i++) {
        as_doubles(x + i * N_EMBD, N_EMBD, row);
        experts_reference(row, expected);
        numbers_expect_near("experts", out + i * N_EMBD, expected, N_EMBD, 3e-6);
    }
    free(x);
    free(out);
}

static void check_all_gatings(void)
{
    static const enum run_gating gatings[] = {RUN_GATE_SOFTMAX, RUN_GATE_SIGMOID,
                                              RUN_GATE_SOFTMAX_WEIGHT};

    for (size_t g = 0; g < COUNT(gatings); g++) {
        for (uint32_t n_used = 1; n_used <= 4; n_used++) {
            hparams.experts.n = N_EXPERTS;
            hparams.experts.n_used = n_used;
            hparams.experts.gating = gatings[g];
            hparams.experts.weights_normed = n_used % 2;
            hparams.experts.weights_scale = n_used > 2 ? 2.5f : 1;
            check_experts();
        }
    }
}

Test(run_experts, every_gating)
{
    kind.has_gate = true;
    make_experts();
    check_all_gatings();
}

Test(run_experts, fused_gate_or_no_gate)
{
    make_experts();
    check_all_gatings();
    end();
    begin();
    kind.is_fused = true;
    make_experts();
    check_all_gatings();
}

Test(run_experts, selection_bias_does_not_change_weights)
{
    kind.has_gate = kind.has_selection = true;
    make_experts();
    check_all_gatings();
}

Test(run_experts, groups)
{
    kind.has_gate = kind.has_selection = true;
    make_experts();
    hparams.experts.n_groups = 4;
    hparams.experts.n_groups_used = 2;
    check_all_gatings();
    hparams.experts.n_groups = 2;
    hparams.experts.n_groups_used = 1;
    check_all_gatings();
    hparams.experts.n_groups = 8; /* one expert per group */
    hparams.experts.n_groups_used = 5;
    check_all_gatings();
}

Test(run_experts, shared_experts_with_and_without_gate)
{
    kind.has_gate = kind.has_shared = true;
    make_experts();
    check_all_gatings();
    end();
    begin();
    kind.has_shared_gate = true;
    make_experts();
    check_all_gatings();
}

Test(run_experts, scale_per_expert)
{
    kind.has_gate = kind.has_scales = true;
    make_experts();
    check_all_gatings();
}

Test(run_experts, weights_before_the_experts)
{
    kind.has_gate = true;
    make_experts();
    architecture.layers = RUN_WEIGHTS_BEFORE;
    check_all_gatings();
}

Test(run_experts, ties_choose_the_first_expert)
{
    const float zeros[N_EMBD * N_EXPERTS] = {0};
    float *same;

    kind.has_gate = true;
    make_experts();
    /* Zero the router weights of the reference as well. */
    same = (float *)(uintptr_t)run_files_values(&files, "ffn_gate_inp.weight");
    memcpy(same, zeros, sizeof zeros);
    run_files_floats(&files, "ffn_gate_inp.weight", N_EMBD, N_EXPERTS, 0, same);
    check_all_gatings();
    hparams.experts.n_groups = 4;
    hparams.experts.n_groups_used = 2;
    check_all_gatings();
}

/* Memory suffices only if no expert is chosen twice for a token, not even with NaN scores. */
Test(run_experts, nan_and_infinite_scores)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    float router[N_EMBD * N_EXPERTS], selection[N_EXPERTS];
    float x[N_TOKENS * N_EMBD], out[N_TOKENS * N_EMBD];

    kind.has_gate = kind.has_selection = true;
    make_experts();
    hparams.experts = (struct run_experts_shape){.n = N_EXPERTS, .n_used = 4, .weights_scale = 1};
    for (size_t round = 0; round < 60; round++) {
        numbers_fill(&files.random, 1, router, COUNT(router));
        numbers_fill(&files.random, 1, selection, COUNT(selection));
        numbers_fill(&files.random, 1, x, COUNT(x));
        for (size_t i = 0; i < N_EXPERTS; i++) {
            if (round % 3 != 0)
                selection[i] = odd[(round + i) % COUNT(odd)];
            if (round % 3 != 1)
                router[i * N_EMBD] = odd[(round * 7 + i * i) % COUNT(odd)];
        }
        if (round % 5 == 0)
            x[round % COUNT(x)] = odd[round / 5 % COUNT(odd)];
        run_files_floats(&files, "ffn_gate_inp.weight", N_EMBD, N_EXPERTS, 0, router);
        run_files_floats(&files, "exp_probs_b.bias", N_EXPERTS, 0, 0, selection);
        hparams.experts.gating = (enum run_gating)(round % 3);
        hparams.experts.n_groups = round % 2 ? 4 : 1;
        hparams.experts.n_groups_used = 2;
        {
            struct run_feed_forward layer = {0};
            struct run_part part;
            struct run_pass pass = {.hparams = &hparams, .n = N_TOKENS};

            run_part_open(&files, &part);
            run_feed_forward_load(&part.loader, &hparams, &shape, &layer);
            cr_assert_eq(part.loader.code, 0, "%s", part.failure.text);
            pass.scratch = &part.scratch;
            run_feed_forward_apply(&layer, &pass, &(struct run_feed_forward_input){x, x, x}, out);
            run_part_close(&part);
        }
    }
}

Test(run_experts, wrong_shapes_are_refused)
{
    kind.has_gate = true;
    make_experts();
    expect_refused(-EINVAL, "ffn_gate_inp.weight: a router, but the metadata have no expert_count");
    hparams.experts.n = N_EXPERTS / 2;
    expect_refused(-EINVAL, "tensors/ffn_gate_inp.weight: shape [12, 8, 1] (ne), expected");
    hparams.experts.n = N_EXPERTS;
    run_files_random(&files, "ffn_down_exps.weight", N_FF, N_EMBD, N_EXPERTS - 1, 1);
    expect_refused(-EINVAL, "tensors/ffn_down_exps.weight: shape");
    run_files_random(&files, "ffn_down_exps.weight", 1, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/ffn_down_exps.weight: shape");
    run_files_random(&files, "ffn_down_exps.weight", N_FF, N_EMBD, N_EXPERTS, 1);
    run_files_random(&files, "exp_probs_b.bias", N_EXPERTS + 1, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/exp_probs_b.bias: 9 elements, expected 8");
}
