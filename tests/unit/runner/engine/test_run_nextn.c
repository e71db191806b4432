/* The layer that drafts tokens, compared with a second implementation in double. */
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/engine/nextn.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_LAYER = 2, N_EMBD = 32, N_HEAD = 4, N_KV = 2, DIM = 8, N_FF = 44, N_VOCAB = 37 };
enum { N_TOKENS = 60, MOST = 4 };

/* The architecture, and its names of the norms before the feed-forward and before the head. */
struct model {
    const char *architecture, *ffn_norm, *head_norm;
    bool has_own_ends;
    bool takes_normed; /* states after the output norm */
};

static const struct model models[] = {
    {"glm4moe", "post_attention_norm", "nextn.shared_head_norm", true, true},
    {"glm4moe", "post_attention_norm", NULL, false, true},
    {"mimo2", "ffn_norm", "nextn.shared_head_norm", true, false},
    {"mimo2", "ffn_norm", "layer_output_norm", false, false},
};

static const struct model *model;
static struct run_files files;
static struct run_failure failure;

static void make_tensor(int layer, const char *name, uint64_t ne0, uint64_t ne1, float scale)
{
    char whole[64];

    snprintf(whole, sizeof whole, "blk.%d.%s.weight", layer, name);
    run_files_random(&files, whole, ne0, ne1, 0, scale);
}

static void make_layer(int layer, float scale)
{
    make_tensor(layer, "attn_norm", N_EMBD, 0, 2);
    make_tensor(layer, "attn_q", N_EMBD, (uint64_t)N_HEAD * DIM, 0.3f);
    make_tensor(layer, "attn_k", N_EMBD, (uint64_t)N_KV * DIM, 0.3f);
    make_tensor(layer, "attn_v", N_EMBD, (uint64_t)N_KV * DIM, 0.3f);
    make_tensor(layer, "attn_output", (uint64_t)N_HEAD * DIM, N_EMBD, scale);
    make_tensor(layer, model->ffn_norm, N_EMBD, 0, 2);
    make_tensor(layer, "ffn_gate", N_EMBD, N_FF, 0.3f);
    make_tensor(layer, "ffn_up", N_EMBD, N_FF, 0.3f);
    make_tensor(layer, "ffn_down", N_FF, N_EMBD, scale);
}

/* The layers add nothing if `scale` is 0. */
static void make_model(const struct model *of, float scale)
{
    const char *name = of->architecture;
    char text[1000];

    model = of;
    run_files_make(&files);
    snprintf(text, sizeof text,
             "{\"general.architecture\": \"%s\", \"%s.block_count\": %d, "
             "\"%s.nextn_predict_layers\": 1, \"%s.embedding_length\": %d, "
             "\"%s.attention.head_count\": %d, \"%s.attention.head_count_kv\": %d, "
             "\"%s.attention.key_length\": %d, \"%s.attention.value_length\": %d, "
             "\"%s.context_length\": %d, \"%s.rope.dimension_count\": %d, "
             "\"%s.attention.sliding_window_pattern\": [0, 0, 0], "
             "\"%s.attention.layer_norm_rms_epsilon\": 1e-6}",
             name, name, N_LAYER + 1, name, name, N_EMBD, name, N_HEAD, name, N_KV, name, DIM, name,
             DIM, name, N_TOKENS, name, DIM, name, name);
    run_files_metadata(&files, text);
    run_files_complete_keys(&files, name);
    run_files_random(&files, "token_embd.weight", N_EMBD, N_VOCAB, 0, 1);
    run_files_random(&files, "output_norm.weight", N_EMBD, 0, 0, 2);
    run_files_random(&files, "output.weight", N_EMBD, N_VOCAB, 0, 1);
    for (int i = 0; i <= N_LAYER; i++)
        make_layer(i, scale);
    make_tensor(N_LAYER, "nextn.enorm", N_EMBD, 0, 2);
    make_tensor(N_LAYER, "nextn.hnorm", N_EMBD, 0, 2);
    make_tensor(N_LAYER, "nextn.eh_proj", (uint64_t)2 * N_EMBD, N_EMBD, 0.5f);
    if (model->head_norm)
        make_tensor(N_LAYER, model->head_norm, N_EMBD, 0, 2);
    if (model->has_own_ends) {
        make_tensor(N_LAYER, "nextn.embed_tokens", N_EMBD, N_VOCAB, 1);
        make_tensor(N_LAYER, "nextn.shared_head_head", N_EMBD, N_VOCAB, 1);
    }
}

/* ---- the reference ---- */

static double keys[N_TOKENS + MOST][N_KV][DIM], values[N_TOKENS + MOST][N_KV][DIM];

static const float *weights_of(const char *name)
{
    char whole[64];
    const float *found;

    snprintf(whole, sizeof whole, "blk.%d.%s.weight", N_LAYER, name);
    found = run_files_values(&files, whole);
    cr_assert_not_null(found, "%s", whole);
    return found;
}

static void rms(const double *x, const float *weight, double *out)
{
    double squares = 0;

    for (size_t i = 0; i < N_EMBD; i++)
        squares += x[i] * x[i] / N_EMBD;
    for (size_t i = 0; i < N_EMBD; i++)
        out[i] = x[i] / sqrt(squares + 1e-6) * (double)weight[i];
}

/* Rotate element i of each head with element i + DIM / 2. */
static void rotate(double *x, size_t n_heads, size_t position)
{
    for (size_t head = 0; head < n_heads; head++) {
        for (size_t i = 0; i < DIM / 2; i++) {
            const double angle = (double)position * pow(10000, -2 * (double)i / DIM);
            double *first = x + head * DIM + i, *second = first + DIM / 2;
            const double a = *first, b = *second;

            *first = a * cos(angle) - b * sin(angle);
            *second = a * sin(angle) + b * cos(angle);
        }
    }
}

static void attend(size_t position, const double *x, double *out)
{
    double queries[N_HEAD][DIM], found[N_HEAD][DIM] = {0};

    numbers_multiply(weights_of("attn_q"), (size_t)N_HEAD * DIM, N_EMBD, x, queries[0]);
    numbers_multiply(weights_of("attn_k"), (size_t)N_KV * DIM, N_EMBD, x, keys[position][0]);
    numbers_multiply(weights_of("attn_v"), (size_t)N_KV * DIM, N_EMBD, x, values[position][0]);
    rotate(queries[0], N_HEAD, position);
    rotate(keys[position][0], N_KV, position);
    for (size_t head = 0; head < N_HEAD; head++) {
        const size_t kv = head / (N_HEAD / N_KV);
        double sum = 0;

        for (size_t t = 0; t <= position; t++) {
            double score = 0;

            for (size_t i = 0; i < DIM; i++)
                score += queries[head][i] * keys[t][kv][i] / sqrt(DIM);
            sum += exp(score);
            for (size_t i = 0; i < DIM; i++)
                found[head][i] += exp(score) * values[t][kv][i];
        }
        for (size_t i = 0; i < DIM; i++)
            found[head][i] /= sum;
    }
    numbers_multiply(weights_of("attn_output"), N_EMBD, (size_t)N_HEAD * DIM, found[0], out);
}

static void feed_forward(const double *x, double *out)
{
    double gate[N_FF], up[N_FF];

    numbers_multiply(weights_of("ffn_gate"), N_FF, N_EMBD, x, gate);
    numbers_multiply(weights_of("ffn_up"), N_FF, N_EMBD, x, up);
    for (size_t i = 0; i < N_FF; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    numbers_multiply(weights_of("ffn_down"), N_EMBD, N_FF, up, out);
}

/*
 * Compute the pair of a state, at that position, and the token after it: the logits, and in place
 * of the state the one that continues. Returns the most likely token.
 */
static int32_t step(size_t position, double *state, int32_t token, double *logits)
{
    const float *embeddings = model->has_own_ends ? weights_of("nextn.embed_tokens")
                                                  : run_files_values(&files, "token_embd.weight");
    double joined[2 * N_EMBD], x[N_EMBD], normed[N_EMBD], part[N_EMBD];
    int32_t best = 0;

    for (size_t i = 0; i < N_EMBD; i++)
        x[i] = (double)embeddings[(size_t)token * N_EMBD + i];
    rms(x, weights_of("nextn.enorm"), joined);
    rms(state, weights_of("nextn.hnorm"), joined + N_EMBD);
    numbers_multiply(weights_of("nextn.eh_proj"), N_EMBD, (size_t)2 * N_EMBD, joined, x);
    rms(x, weights_of("attn_norm"), normed);
    attend(position, normed, part);
    for (size_t i = 0; i < N_EMBD; i++)
        x[i] += part[i];
    rms(x, weights_of(model->ffn_norm), normed);
    feed_forward(normed, part);
    for (size_t i = 0; i < N_EMBD; i++)
        x[i] += part[i];
    rms(x,
        model->head_norm ? weights_of(model->head_norm)
                         : run_files_values(&files, "output_norm.weight"),
        normed);
    numbers_multiply(model->has_own_ends ? weights_of("nextn.shared_head_head")
                                         : run_files_values(&files, "output.weight"),
                     N_VOCAB, N_EMBD, normed, logits);
    memcpy(state, model->takes_normed ? normed : x, sizeof normed);
    for (int32_t i = 1; i < N_VOCAB; i++)
        if (logits[i] > logits[best])
            best = i;
    return best;
}

/* ---- the layer alone, after any states ---- */

static struct run_part part;
static struct run_hparams hparams;
static struct run_rotary rotary[2];
static struct run_norm_layer output_norm;
static struct run_linear embedding, output;
static struct run_nextn nextn;
static float *states;
static int32_t tokens[N_TOKENS];

static void open_layer(uint32_t n_batch)
{
    const struct run_mixer_place place = {
        .hparams = &hparams, .index = N_LAYER, .cache_type = DEQUANT_F32};
    const struct run_nextn_model around = {.embedding = &embedding,
                                           .output = &output,
                                           .output_norm = &output_norm,
                                           .n_vocab = N_VOCAB,
                                           .n_batch = n_batch};
    struct run_rotary_scaling scaling;
    struct run_layer_kinds kinds = {0};

    run_part_open(&files, &part);
    cr_assert_eq(run_hparams_read(part.tree.metadata, &hparams, &failure), 0, "%s", failure.text);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(
            run_hparams_rotary(&hparams, part.tree.metadata, i, &rotary[i], &scaling, &failure), 0);
        cr_assert_eq(run_rotary_make(&rotary[i], &scaling), 0);
    }
    run_load_linear(&part.loader, "token_embd", N_EMBD, N_VOCAB, &embedding);
    run_load_linear(&part.loader, "output", N_EMBD, N_VOCAB, &output);
    run_load_norm_if(&part.loader, "output_norm", RUN_NORM_RMS, hparams.norm_epsilon, N_EMBD,
                     &output_norm);
    run_nextn_load(&part.loader, &place, &around, &kinds, &nextn);
    cr_assert_eq(part.loader.code, 0, "%s", part.failure.text);
    cr_assert(nextn.is_there);
}

static void close_layer(void)
{
    nextn = (struct run_nextn){0};
    run_rotary_free(&rotary[0]);
    run_rotary_free(&rotary[1]);
    run_hparams_free(&hparams);
    run_part_close(&part);
}

static void make_states(void)
{
    uint64_t random = 7;

    states = numbers_make(&random, 3, (size_t)N_TOKENS * N_EMBD);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)(i * i * 7 % N_VOCAB);
}

static void keep(size_t first, size_t n)
{
    const struct run_pass pass = {.hparams = &hparams,
                                  .scratch = &part.scratch,
                                  .rotary = rotary,
                                  .n = n,
                                  .first = first,
                                  .tokens = tokens + first};

    run_nextn_keep(&nextn, &pass, states + first * N_EMBD);
}

/* The reference for the pair at a position, and with `most` tokens drafted from there on. */
static void expect_drafts(size_t position, size_t most)
{
    const struct run_pass pass = {.hparams = &hparams, .scratch = &part.scratch, .rotary = rotary};
    int32_t draft[MOST + 1] = {0}, token = tokens[position + 1];
    double state[N_EMBD], logits[N_VOCAB];

    draft[most] = -7;
    cr_assert_eq(run_nextn_draft(&nextn, &pass, token, most, draft), most);
    for (size_t i = 0; i < N_EMBD; i++)
        state[i] = (double)states[position * N_EMBD + i];
    if (model->takes_normed)
        rms(state, run_files_values(&files, "output_norm.weight"), state);
    for (size_t i = 0; i < most; i++) {
        token = step(position + i, state, token, logits);
        cr_expect_eq(draft[i], token, "draft %zu at position %zu", i, position);
    }
    numbers_expect_near("logits", nextn.logits, logits, N_VOCAB, 1e-5);
    cr_expect_eq(draft[most], -7);
    run_scratch_release(&part.scratch, (struct run_scratch_mark){0});
}

static void expect_nothing_drafted(void)
{
    const struct run_pass pass = {.hparams = &hparams, .scratch = &part.scratch, .rotary = rotary};
    int32_t draft[MOST];

    cr_expect_eq(run_nextn_draft(&nextn, &pass, 1, MOST, draft), 0u);
}

/* Compute the pairs of the positions that no draft begins at. */
static void reference_pair(size_t position)
{
    double state[N_EMBD], logits[N_VOCAB];

    for (size_t i = 0; i < N_EMBD; i++)
        state[i] = (double)states[position * N_EMBD + i];
    if (model->takes_normed)
        rms(state, run_files_values(&files, "output_norm.weight"), state);
    step(position, state, tokens[position + 1], logits);
}

TestSuite(run_nextn);

/* Passes of 1 to n_batch tokens, with drafts after some of them. */
static void compare(uint32_t n_batch, size_t period)
{
    size_t n_past = 0, n_done = 0;

    open_layer(n_batch);
    expect_nothing_drafted();
    for (size_t i = 0;; i++) {
        const size_t n = 1 + i % n_batch;

        if (n_past + n >= N_TOKENS)
            break;
        keep(n_past, n);
        n_past += n;
        if (i % period > 0)
            continue;
        for (; n_done < n_past - 1; n_done++)
            reference_pair(n_done);
        expect_drafts(n_past - 1, 1 + i % MOST);
        expect_nothing_drafted();
        n_done = n_past;
    }
    close_layer();
}

Test(run_nextn, drafts_match_the_reference)
{
    for (size_t i = 0; i < COUNT(models); i++) {
        make_model(&models[i], 0.3f);
        make_states();
        for (uint32_t n_batch = 1; n_batch <= 16; n_batch *= 4)
            for (size_t period = 1; period <= 7; period += 3)
                compare(n_batch, period);
        free(states);
        run_files_remove(&files);
    }
}

Test(run_nextn, rewinding)
{
    make_model(&models[0], 0.3f);
    make_states();
    open_layer(16);
    keep(0, 10);
    run_nextn_rewind(&nextn, 4); /* the rest has not been computed yet */
    for (size_t i = 0; i < 3; i++)
        reference_pair(i);
    expect_drafts(3, MOST);
    keep(4, 9);
    run_nextn_rewind(&nextn, 6);
    reference_pair(4);
    expect_drafts(5, 2);
    run_nextn_rewind(&nextn, 6);
    keep(6, 3);
    reference_pair(6);
    reference_pair(7);
    expect_drafts(8, 3);
    run_nextn_rewind(&nextn, 7); /* all have been computed */
    expect_nothing_drafted();
    keep(7, 3);
    reference_pair(7);
    reference_pair(8);
    expect_drafts(9, 2);
    run_nextn_rewind(&nextn, 0);
    expect_nothing_drafted();
    keep(0, 2);
    reference_pair(0);
    expect_drafts(1, 1);
    close_layer();
    free(states);
    run_files_remove(&files);
}

/* ---- the layer in a model ---- */

/* Open the model, and feed and draft some tokens. *problem = why there are no drafts; or NULL. */
static void run_model(char problem[sizeof failure.text])
{
    const struct run_engine_options options = {
        .cache_type = DEQUANT_F32, .has_nextn = true, .can_rewind = true};
    struct run_tree tree = run_files_open(&files);
    struct run_engine *engine;
    const char *text;
    float logits[N_VOCAB];
    int32_t draft[MOST];
    size_t n = 0;

    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0, "%s",
                 failure.text);
    make_states();
    cr_assert_eq(run_engine_feed(engine, tokens, 9, RUN_LOGITS_LAST, logits, &failure), 0);
    if (run_engine_can_draft(engine, &text))
        cr_assert_eq(run_engine_draft(engine, tokens[9], MOST, draft, &n, &failure), 0);
    cr_expect_eq(n > 0, !text);
    snprintf(problem, sizeof failure.text, "%s", text ? text : "");
    free(states);
    run_engine_close(engine);
    run_tree_close(&tree);
    run_files_remove(&files);
}

Test(run_nextn, a_norm_of_the_head_that_other_layers_lack)
{
    char problem[sizeof failure.text];

    make_model(&models[3], 0.3f);
    run_model(problem);
    cr_expect_str_eq(problem, "");
}
