/* Whole models on the runner: a llama, compared with a second implementation in double. */
#include "contrib/runner/engine/engine.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_LAYER = 2, N_EMBD = 32, N_HEAD = 4, N_KV = 2, DIM = 8, N_FF = 44, N_VOCAB = 37 };
enum { N_CONTEXT = 48, N_TOKENS = 29 };

static struct run_files files;
static struct run_tree tree;
static struct run_engine *engine;
static struct run_failure failure;
static int32_t tokens[N_CONTEXT];

/* `more` are further keys: ", \"KEY\": VALUE". */
static void make_metadata_of(const char *name, const char *more)
{
    char text[1000];

    snprintf(text, sizeof text,
             "{\"general.architecture\": \"%s\", \"%s.block_count\": %d, "
             "\"%s.embedding_length\": %d, \"%s.attention.head_count\": %d, "
             "\"%s.attention.head_count_kv\": %d, \"%s.context_length\": %d, "
             "\"%s.attention.layer_norm_rms_epsilon\": 1e-6%s}",
             name, name, N_LAYER, name, N_EMBD, name, N_HEAD, name, N_KV, name, N_CONTEXT, name,
             more);
    run_files_metadata(&files, text);
    run_files_complete_keys(&files, name);
}

static void make_metadata(const char *more)
{
    make_metadata_of("llama", more);
}

static void make_layer_tensor(size_t layer, const char *name, uint64_t ne0, uint64_t ne1,
                              float scale)
{
    char whole[64];

    snprintf(whole, sizeof whole, "blk.%zu.%s.weight", layer, name);
    run_files_random(&files, whole, ne0, ne1, 0, scale);
}

static void make_tensors(bool is_gated)
{
    run_files_random(&files, "token_embd.weight", N_EMBD, N_VOCAB, 0, 1);
    run_files_random(&files, "output_norm.weight", N_EMBD, 0, 0, 2);
    run_files_random(&files, "output.weight", N_EMBD, N_VOCAB, 0, 1);
    for (size_t i = 0; i < N_LAYER; i++) {
        make_layer_tensor(i, "attn_norm", N_EMBD, 0, 2);
        make_layer_tensor(i, "attn_q", N_EMBD, (uint64_t)N_HEAD * DIM, 0.3f);
        make_layer_tensor(i, "attn_k", N_EMBD, (uint64_t)N_KV * DIM, 0.3f);
        make_layer_tensor(i, "attn_v", N_EMBD, (uint64_t)N_KV * DIM, 0.3f);
        make_layer_tensor(i, "attn_output", (uint64_t)N_HEAD * DIM, N_EMBD, 0.3f);
        make_layer_tensor(i, "ffn_norm", N_EMBD, 0, 2);
        if (is_gated)
            make_layer_tensor(i, "ffn_gate", N_EMBD, N_FF, 0.3f);
        make_layer_tensor(i, "ffn_up", N_EMBD, N_FF, 0.3f);
        make_layer_tensor(i, "ffn_down", N_FF, N_EMBD, 0.3f);
    }
}

static void begin(void)
{
    run_files_make(&files);
    make_metadata("");
    make_tensors(true);
    for (size_t i = 0; i < N_CONTEXT; i++)
        tokens[i] = (int32_t)(i * i * 7 % N_VOCAB);
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_engine, .init = begin, .fini = end);

static void open_engine(const struct run_engine_options *options)
{
    tree = run_files_open(&files);
    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, options, &engine, &failure), 0, "%s",
                 failure.text);
}

static void close_engine(void)
{
    run_engine_close(engine);
    run_tree_close(&tree);
}

static void feed(const int32_t *ids, size_t n, float *logits)
{
    cr_assert_eq(run_engine_feed(engine, ids, n, RUN_LOGITS_ALL, logits, &failure), 0, "%s",
                 failure.text);
}

/* ---- the reference ---- */

static const float *weights_of(size_t layer, const char *name)
{
    char whole[64];
    const float *values;

    snprintf(whole, sizeof whole, "blk.%zu.%s.weight", layer, name);
    values = run_files_values(&files, whole);
    cr_assert_not_null(values, "%s", whole);
    return values;
}

static void rms(const double *x, const float *weight, double *out)
{
    double squares = 0;

    for (size_t i = 0; i < N_EMBD; i++)
        squares += x[i] * x[i] / N_EMBD;
    for (size_t i = 0; i < N_EMBD; i++)
        out[i] = x[i] / sqrt(squares + 1e-6) * (double)weight[i];
}

static void rotate(double *x, size_t n_heads, size_t position)
{
    for (size_t i = 0; i < n_heads * DIM; i += 2) {
        const double angle = (double)position * pow(10000, -(double)(i % DIM) / DIM);
        const double a = x[i], b = x[i + 1];

        x[i] = a * cos(angle) - b * sin(angle);
        x[i + 1] = a * sin(angle) + b * cos(angle);
    }
}

static void attend(size_t layer, size_t position, const double *x, double *out)
{
    static double keys[N_LAYER][N_TOKENS][N_KV][DIM], values[N_LAYER][N_TOKENS][N_KV][DIM];
    double queries[N_HEAD][DIM], found[N_HEAD][DIM] = {0};

    numbers_multiply(weights_of(layer, "attn_q"), N_HEAD * DIM, N_EMBD, x, queries[0]);
    numbers_multiply(weights_of(layer, "attn_k"), N_KV * DIM, N_EMBD, x, keys[layer][position][0]);
    numbers_multiply(weights_of(layer, "attn_v"), N_KV * DIM, N_EMBD, x,
                     values[layer][position][0]);
    rotate(queries[0], N_HEAD, position);
    rotate(keys[layer][position][0], N_KV, position);
    for (size_t head = 0; head < N_HEAD; head++) {
        const size_t kv = head / (N_HEAD / N_KV);
        double sum = 0;

        for (size_t t = 0; t <= position; t++) {
            double score = 0;

            for (size_t i = 0; i < DIM; i++)
                score += queries[head][i] * keys[layer][t][kv][i] / sqrt(DIM);
            sum += exp(score);
            for (size_t i = 0; i < DIM; i++)
                found[head][i] += exp(score) * values[layer][t][kv][i];
        }
        for (size_t i = 0; i < DIM; i++)
            found[head][i] /= sum;
    }
    numbers_multiply(weights_of(layer, "attn_output"), N_EMBD, N_HEAD * DIM, found[0], out);
}

static void feed_forward(size_t layer, const double *x, double *out)
{
    double gate[N_FF], up[N_FF];

    numbers_multiply(weights_of(layer, "ffn_gate"), N_FF, N_EMBD, x, gate);
    numbers_multiply(weights_of(layer, "ffn_up"), N_FF, N_EMBD, x, up);
    for (size_t i = 0; i < N_FF; i++)
        up[i] *= gate[i] / (1 + exp(-gate[i]));
    numbers_multiply(weights_of(layer, "ffn_down"), N_EMBD, N_FF, up, out);
}

/* Compute the logits of all tokens, one token after the other. */
static double *reference(void)
{
    double *logits = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *logits);

    for (size_t t = 0; t < N_TOKENS; t++) {
        const float *row = run_files_values(&files, "token_embd.weight") + tokens[t] * N_EMBD;
        double x[N_EMBD], normed[N_EMBD], part[N_EMBD];

        for (size_t i = 0; i < N_EMBD; i++)
            x[i] = (double)row[i];
        for (size_t layer = 0; layer < N_LAYER; layer++) {
            rms(x, weights_of(layer, "attn_norm"), normed);
            attend(layer, t, normed, part);
            for (size_t i = 0; i < N_EMBD; i++)
                x[i] += part[i];
            rms(x, weights_of(layer, "ffn_norm"), normed);
            feed_forward(layer, normed, part);
            for (size_t i = 0; i < N_EMBD; i++)
                x[i] += part[i];
        }
        rms(x, run_files_values(&files, "output_norm.weight"), normed);
        numbers_multiply(run_files_values(&files, "output.weight"), N_VOCAB, N_EMBD, normed,
                         logits + t * N_VOCAB);
    }
    return logits;
}

/* ---- tests ---- */

Test(run_engine, logits_match_the_reference)
{
    const struct run_engine_options options = {0};
    float *logits = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *logits);
    double *expected = reference();

    open_engine(&options);
    cr_expect_eq(run_engine_counts(engine).n_vocab, (uint32_t)N_VOCAB);
    cr_expect_eq(run_engine_counts(engine).n_context, (uint32_t)N_CONTEXT);
    feed(tokens, N_TOKENS, logits);
    cr_expect_eq(run_engine_counts(engine).n_past, (uint32_t)N_TOKENS);
    numbers_expect_near("logits", logits, expected, (size_t)N_TOKENS * N_VOCAB, 3e-6);
    close_engine();
    free(logits);
    free(expected);
}

Test(run_engine, batch_size_does_not_change_logits)
{
    float *logits = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *logits);
    float *others = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *others);

    for (int is_f16 = 0; is_f16 < 2; is_f16++) {
        struct run_engine_options options = {.cache_type = is_f16 ? DEQUANT_F16 : DEQUANT_F32};

        open_engine(&options);
        feed(tokens, N_TOKENS, logits);
        /* Several calls of `size` tokens. */
        for (size_t size = 1; size <= 8; size++) {
            run_engine_reset(engine);
            for (size_t i = 0; i < N_TOKENS; i += size)
                feed(tokens + i, N_TOKENS - i < size ? N_TOKENS - i : size, others + i * N_VOCAB);
            numbers_expect_same("in calls", others, logits, (size_t)N_TOKENS * N_VOCAB);
        }
        close_engine();
        /* One call, which the engine divides into batches. */
        for (uint32_t size = 1; size <= 32; size += 6) {
            options.n_batch = size;
            open_engine(&options);
            feed(tokens, N_TOKENS, others);
            numbers_expect_same("in batches", others, logits, (size_t)N_TOKENS * N_VOCAB);
            close_engine();
        }
    }
    free(logits);
    free(others);
}

Test(run_engine, f16_cache_is_near_the_reference)
{
    const struct run_engine_options options = {.cache_type = DEQUANT_F16};
    float *logits = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *logits);
    double *expected = reference();

    open_engine(&options);
    feed(tokens, N_TOKENS, logits);
    numbers_expect_near("logits", logits, expected, (size_t)N_TOKENS * N_VOCAB, 5e-3);
    close_engine();
    free(logits);
    free(expected);
}

Test(run_engine, last_logits_or_none)
{
    const struct run_engine_options options = {.n_batch = 5};
    float *all = numbers_alloc((size_t)N_TOKENS * N_VOCAB, sizeof *all), last[N_VOCAB + 1];

    open_engine(&options);
    feed(tokens, N_TOKENS, all);
    run_engine_reset(engine);
    last[N_VOCAB] = 77;
    cr_assert_eq(run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_LAST, last, &failure), 0);
    numbers_expect_same("the last", last, all + (size_t)(N_TOKENS - 1) * N_VOCAB, N_VOCAB);
    cr_expect_eq(last[N_VOCAB], 77);
    run_engine_reset(engine);
    cr_assert_eq(run_engine_feed(engine, tokens, 12, RUN_LOGITS_NONE, NULL, &failure), 0);
    cr_assert_eq(run_engine_feed(engine, tokens, 0, RUN_LOGITS_LAST, last, &failure), 0);
    cr_assert_eq(run_engine_feed(engine, tokens + 12, 1, RUN_LOGITS_ALL, last, &failure), 0);
    numbers_expect_same("after none", last, all + (size_t)12 * N_VOCAB, N_VOCAB);
    close_engine();
    free(all);
}

Test(run_engine, reset_clears_the_state)
{
    const struct run_engine_options options = {0};
    float first[5 * N_VOCAB], again[5 * N_VOCAB];

    open_engine(&options);
    feed(tokens, 5, first);
    run_engine_reset(engine);
    cr_expect_eq(run_engine_counts(engine).n_past, 0u);
    feed(tokens + 7, 5, again);
    run_engine_reset(engine);
    feed(tokens, 5, again);
    numbers_expect_same("again", again, first, 5 * N_VOCAB);
    close_engine();
}

Test(run_engine, more_tokens_than_the_context_are_refused)
{
    const struct run_engine_options options = {.n_context = 10};
    float logits[10 * N_VOCAB], again[10 * N_VOCAB];

    open_engine(&options);
    cr_expect_eq(run_engine_counts(engine).n_context, 10u);
    cr_expect_eq(run_engine_feed(engine, tokens, 11, RUN_LOGITS_ALL, logits, &failure), -ERANGE);
    cr_expect_str_eq(failure.text, "11 tokens after 0 do not fit the context of 10");
    cr_expect_eq(run_engine_counts(engine).n_past, 0u);
    feed(tokens, 10, logits);
    cr_expect_eq(run_engine_feed(engine, tokens, 1, RUN_LOGITS_ALL, logits, &failure), -ERANGE);
    cr_expect_eq(run_engine_feed(engine, tokens, SIZE_MAX, RUN_LOGITS_ALL, logits, &failure),
                 -ERANGE);
    cr_expect_eq(run_engine_counts(engine).n_past, 10u);
    run_engine_reset(engine);
    feed(tokens, 10, again);
    numbers_expect_same("after refused calls", again, logits, 10 * N_VOCAB);
    close_engine();
}

Test(run_engine, ids_outside_the_vocabulary_are_refused)
{
    static const int32_t bad[] = {-1, N_VOCAB, INT32_MAX, INT32_MIN};
    const struct run_engine_options options = {0};
    float logits[3 * N_VOCAB];

    open_engine(&options);
    for (size_t i = 0; i < COUNT(bad); i++) {
        const int32_t ids[] = {1, 2, bad[i]};

        cr_expect_eq(run_engine_feed(engine, ids, 3, RUN_LOGITS_ALL, logits, &failure), -EINVAL);
        cr_expect_not_null(strstr(failure.text, "not in the vocabulary of 37"), "%s", failure.text);
        cr_expect_eq(run_engine_counts(engine).n_past, 0u, "a refused call feeds no token");
    }
    close_engine();
}

Test(run_engine, learned_positions_limit_the_context)
{
    static const uint32_t asked[] = {0, 5, 1000};
    static const uint32_t given[] = {9, 5, 9};

    run_files_remove(&files);
    run_files_make(&files);
    make_metadata_of("mpt", "");
    make_tensors(false);
    run_files_random(&files, "position_embd.weight", N_EMBD, 9, 0, 1);
    for (size_t i = 0; i < COUNT(asked); i++) {
        const struct run_engine_options options = {.n_context = asked[i]};
        float logits[9 * N_VOCAB];

        open_engine(&options);
        cr_expect_eq(run_engine_counts(engine).n_context, given[i]);
        feed(tokens, given[i], logits);
        cr_expect_eq(run_engine_feed(engine, tokens, 1, RUN_LOGITS_ALL, logits, &failure), -ERANGE);
        close_engine();
    }
}

Test(run_engine, tied_embeddings)
{
    const struct run_engine_options options = {0};
    const float *embedding = run_files_values(&files, "token_embd.weight");
    float logits[3 * N_VOCAB], tied[3 * N_VOCAB];
    char path[200];

    run_files_floats(&files, "output.weight", N_EMBD, N_VOCAB, 0, embedding);
    open_engine(&options);
    feed(tokens, 3, logits);
    close_engine();
    snprintf(path, sizeof path, "%s/tensors/output.weight/info", files.path);
    cr_assert_eq(remove(path), 0);
    snprintf(path, sizeof path, "%s/tensors/output.weight/raw", files.path);
    cr_assert_eq(remove(path), 0);
    snprintf(path, sizeof path, "%s/tensors/output.weight", files.path);
    cr_assert_eq(remove(path), 0);
    open_engine(&options);
    feed(tokens, 3, tied);
    numbers_expect_same("tied", tied, logits, 3 * N_VOCAB);
    close_engine();
}

Test(run_engine, scales_multiply_products)
{
    static const char *const names[] = {"blk.0.attn_q", "blk.1.attn_v", "blk.1.ffn_gate",
                                        "blk.0.ffn_down", "output"};
    const struct run_engine_options options = {0};
    const float half = 0.5f;
    float scaled[3 * N_VOCAB], halved[3 * N_VOCAB];
    char name[80];

    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(name, sizeof name, "%s.scale", names[i]);
        run_files_floats(&files, name, 1, 0, 0, &half);
    }
    open_engine(&options);
    feed(tokens, 3, scaled);
    close_engine();
    /* Halving is exact, so halved weights must give the same bits as a scale of 0.5. */
    for (size_t i = 0; i < COUNT(names); i++) {
        const bool is_down = strstr(names[i], "down"), is_ffn = strstr(names[i], "ffn");
        const size_t rows = strcmp(names[i], "output") == 0 ? N_VOCAB
                            : is_ffn && !is_down            ? N_FF
                            : strstr(names[i], "attn_v")    ? N_KV * DIM
                                                            : N_EMBD;
        const size_t width = is_down ? N_FF : N_EMBD;
        float *values, one = 1;

        snprintf(name, sizeof name, "%s.weight", names[i]);
        values = (float *)(uintptr_t)run_files_values(&files, name);
        for (size_t j = 0; j < rows * width; j++)
            values[j] /= 2;
        run_files_floats(&files, name, width, rows, 0, values);
        snprintf(name, sizeof name, "%s.scale", names[i]);
        run_files_floats(&files, name, 1, 0, 0, &one);
    }
    open_engine(&options);
    feed(tokens, 3, halved);
    numbers_expect_same("halved weights", halved, scaled, 3 * N_VOCAB);
    close_engine();
}

static void expect_refused(int code, const char *pattern)
{
    const struct run_engine_options options = {0};

    failure.text[0] = '\0';
    tree = run_files_open(&files);
    cr_expect_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), code,
                 "%s: %s", pattern, failure.text);
    cr_expect_null(engine);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       failure.text, pattern);
    run_tree_close(&tree);
    run_engine_close(NULL);
}

Test(run_engine, invalid_models_are_refused)
{
    make_metadata(", \"llama.rope.dimension_count\": 10");
    expect_refused(-EINVAL, "rope.dimension_count 10 is above");
    make_metadata(", \"llama.attention.key_length\": 10");
    expect_refused(-EINVAL, "tensors/blk.0.attn_q.weight: shape [32, 32, 1] (ne), expected");
    make_metadata(", \"llama.rope.freq_base\": 0.5");
    expect_refused(-EINVAL, "rope.freq_base");
    make_metadata("");
    run_files_random(&files, "rope_freqs.weight", DIM / 2 - 1, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/rope_freqs.weight: 3 elements, expected 4");
    run_files_random(&files, "rope_freqs.weight", DIM / 2, 0, 0, 1);
    run_files_random(&files, "blk.1.attn_norm.weight", N_EMBD - 1, 0, 0, 1);
    expect_refused(-EINVAL, "tensors/blk.1.attn_norm.weight: 31 elements, expected 32");
    make_layer_tensor(1, "attn_norm", N_EMBD, 0, 1);
    run_files_random(&files, "output.weight", N_EMBD, N_VOCAB + 1, 0, 1);
    expect_refused(-EINVAL, "tensors/output.weight: shape");
    run_files_random(&files, "output.weight", N_EMBD, N_VOCAB, 0, 1);
    run_files_random(&files, "position_embd.weight", N_EMBD, 9, 0, 1);
    expect_refused(-EINVAL, "tensors/position_embd.weight: the architecture has no such tensor");
}

/* They must not allocate memory unless the tensors confirm them. */
Test(run_engine, large_metadata_values_are_harmless)
{
    static const char *const large[][2] = {
        {"metadata/llama.block_count.json", "4096"},
        {"metadata/llama.attention.head_count.json", "16384"},
        {"metadata/llama.embedding_length.json", "1048576"},
        {"metadata/llama.expert_count.json", "65536"},
    };

    for (size_t i = 0; i < COUNT(large); i++) {
        make_metadata(", \"llama.expert_used_count\": 60000, "
                      "\"llama.attention.key_length\": 65536");
        run_files_write_text(&files, large[i][0], large[i][1]);
        tree = run_files_open(&files);
        cr_expect_lt(run_engine_open(tree.metadata, tree.weights, &(struct run_engine_options){0},
                                     &engine, &failure),
                     0);
        cr_expect_null(engine);
        run_tree_close(&tree);
    }
    make_metadata(", \"x\": 1");
    tree = run_files_open(&files);
    cr_assert_eq(run_engine_open(tree.metadata, tree.weights,
                                 &(struct run_engine_options){.n_context = UINT32_MAX}, &engine,
                                 &failure),
                 0);
    cr_expect_eq(run_engine_counts(engine).n_context, UINT32_MAX);
    close_engine();
}
