/* Tiny models: different ways to the same logits, bit for bit. */
#include "contrib/runner/engine/engine.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/tiny_models.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_TOKENS = 9, N_LOGITS = N_TOKENS * TINY_N_VOCAB, MAX_ELEMENTS = 1000 };

static struct run_files files;
static struct tiny_model model;

/* Trees in memory, because of their many files. */
static void begin(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_tiny, .init = begin, .fini = end);

/* Compute the logits of all tokens, n_batch tokens at a time. */
static void compute_in(uint32_t n_context, uint32_t n_batch, float logits[N_LOGITS])
{
    static const int32_t tokens[N_TOKENS] = {1, 5, 2, 7, 3, 9, 4, 23, 0};
    const struct run_engine_options options = {.n_context = n_context, .n_batch = n_batch};
    struct run_tree tree = run_files_open(&files);
    struct run_failure failure;
    struct run_engine *engine;

    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0, "%s",
                 failure.text);
    cr_assert_eq(run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_ALL, logits, &failure), 0,
                 "%s", failure.text);
    run_engine_close(engine);
    run_tree_close(&tree);
}

static void compute(uint32_t n_batch, float logits[N_LOGITS])
{
    compute_in(N_TOKENS, n_batch, logits);
}

/* Layers without a mixer: its scratch memory would hide a piece that is too short. */
Test(run_tiny, logits_do_not_depend_on_the_batch)
{
    static const char *const names[] = {"nemotron_h", "nemotron_h_moe"};
    float single[N_LOGITS], batched[N_LOGITS];

    for (size_t i = 0; i < COUNT(names); i++) {
        if (i > 0)
            run_files_remove(&files);
        tiny_model_make(names[i], false, &model);
        tiny_model_write(&model, &files);
        compute(1, single);
        compute(N_TOKENS, batched);
        numbers_expect_same(names[i], batched, single, N_LOGITS);
    }
}

/* A reset makes recurrent layers forget all earlier tokens. */
Test(run_tiny, reset_clears_the_states)
{
    static const char *const names[] = {"mamba",     "mamba2", "plamo2",      "lfm2",
                                        "qwen3next", "qwen35", "kimi-linear", "rwkv6",
                                        "rwkv7",     "arwkv7", "rwkv6qwen2"};
    static const int32_t tokens[N_TOKENS] = {1, 5, 2, 7, 3, 9, 4, 23, 0}, others[] = {6, 8};
    const struct run_engine_options options = {.n_context = N_TOKENS};
    float first[N_LOGITS], after[N_LOGITS], again[N_LOGITS];
    struct run_failure failure;

    for (size_t i = 0; i < COUNT(names); i++) {
        struct run_engine *engine;
        struct run_tree tree;

        if (i > 0)
            run_files_remove(&files);
        tiny_model_make(names[i], false, &model);
        tiny_model_write(&model, &files);
        tree = run_files_open(&files);
        cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0,
                     "%s: %s", names[i], failure.text);
        run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_ALL, first, &failure);
        run_engine_reset(engine);
        run_engine_feed(engine, others, COUNT(others), RUN_LOGITS_NONE, NULL, &failure);
        run_engine_feed(engine, tokens, 1, RUN_LOGITS_ALL, after, &failure);
        cr_expect_neq(memcmp(after, first, TINY_N_VOCAB * sizeof *after), 0, "%s", names[i]);
        run_engine_reset(engine);
        run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_ALL, again, &failure);
        numbers_expect_same(names[i], again, first, N_LOGITS);
        run_engine_close(engine);
        run_tree_close(&tree);
    }
}

/*
 * Engines without states forget the end of a text, however long, so that a chat can go on from
 * where its new text differs. With a nextn layer, drafts are made after it as well.
 */
static bool forgets(const char *architecture)
{
    static const int32_t tokens[N_TOKENS] = {1, 5, 2, 7, 3, 9, 4, 23, 0}, others[] = {6, 8, 2};
    const struct run_engine_options options = {
        .n_context = N_TOKENS, .n_batch = 4, .has_nextn = true, .can_rewind = true};
    float expected[3 * TINY_N_VOCAB], got[3 * TINY_N_VOCAB];
    int32_t drafts[2], drafts_before[2];
    size_t n_drafts = 0, n_before = 0;
    struct run_failure failure;
    struct run_engine *engine;
    struct run_tree tree;
    const char *problem;
    bool keeps;

    tiny_model_make(architecture, false, &model);
    tiny_model_write(&model, &files);
    tree = run_files_open(&files);
    cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0,
                 "%s: %s", architecture, failure.text);
    keeps = run_engine_keeps(engine, 0);
    for (uint32_t n_kept = 0; keeps && n_kept < 6; n_kept++) {
        const bool can_draft = run_engine_can_draft(engine, &problem) && n_kept > 0;

        run_engine_reset(engine);
        run_engine_feed(engine, tokens, n_kept, RUN_LOGITS_NONE, NULL, &failure);
        run_engine_feed(engine, others, 3, RUN_LOGITS_ALL, expected, &failure);
        if (can_draft)
            run_engine_draft(engine, 5, 2, drafts_before, &n_before, &failure);
        run_engine_reset(engine);
        run_engine_feed(engine, tokens, N_TOKENS, RUN_LOGITS_NONE, NULL, &failure);
        cr_assert_eq(run_engine_rewind(engine, n_kept, &failure), 0);
        run_engine_feed(engine, others, 3, RUN_LOGITS_ALL, got, &failure);
        numbers_expect_same(architecture, got, expected, 3 * (size_t)TINY_N_VOCAB);
        if (can_draft)
            run_engine_draft(engine, 5, 2, drafts, &n_drafts, &failure);
        cr_expect(n_drafts == n_before && (n_drafts == 0 || drafts[0] == drafts_before[0]),
                  "%s: drafts after %u tokens", architecture, n_kept);
    }
    run_engine_close(engine);
    run_tree_close(&tree);
    return keeps;
}

/* Feed 700 tokens in calls of 50. After each call, forget and repeat the end of it. */
static void feed_with_rewinds(struct run_engine *engine, float *logits)
{
    struct run_failure failure;
    int32_t tokens[700];

    for (size_t i = 0; i < 700; i++)
        tokens[i] = (int32_t)(i * i % 23);
    for (uint32_t i = 0; i < 700; i += 50) {
        cr_assert_eq(run_engine_feed(engine, tokens + i, 50, RUN_LOGITS_ALL,
                                     logits + (size_t)i * TINY_N_VOCAB, &failure),
                     0);
        cr_assert_eq(run_engine_rewind(engine, i + 1, &failure), 0);
        cr_assert_eq(run_engine_feed(engine, tokens + i + 1, 49, RUN_LOGITS_ALL,
                                     logits + (size_t)(i + 1) * TINY_N_VOCAB, &failure),
                     0);
    }
}

/* Small batches have caches of 256 positions where there is a window, which large ones fill never.
 */
Test(run_tiny, windows_keep_what_they_show)
{
    static const char *const names[] = {"gemma3", "gpt-oss", "llama4", "gemma3n"};
    static const uint32_t batches[] = {4096, 64};
    float *logits[2];

    for (size_t i = 0; i < 4; i++) {
        if (i > 0)
            run_files_remove(&files);
        tiny_model_make(names[i], false, &model);
        tiny_model_write(&model, &files);
        for (size_t j = 0; j < 2; j++) {
            const struct run_engine_options options = {
                .n_context = 700, .n_batch = batches[j], .can_rewind = true};
            struct run_tree tree = run_files_open(&files);
            struct run_failure failure;
            struct run_engine *engine;

            cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure),
                         0, "%s: %s", names[i], failure.text);
            logits[j] = numbers_alloc(700 * TINY_N_VOCAB, sizeof *logits[j]);
            feed_with_rewinds(engine, logits[j]);
            cr_expect(run_engine_keeps(engine, 650));
            cr_expect_eq(run_engine_keeps(engine, 300), j == 0, "%s", names[i]);
            numbers_expect_same(names[i], logits[j], logits[0], 700 * TINY_N_VOCAB);
            run_engine_close(engine);
            run_tree_close(&tree);
        }
        for (size_t j = 0; j < 2; j++)
            free(logits[j]);
    }
}

Test(run_tiny, the_end_of_a_text_is_forgotten)
{
    const struct gguf_architecture *row;
    size_t n = 0;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++) {
        if (i > 0)
            run_files_remove(&files);
        n += forgets(row->name);
    }
    cr_expect_gt(n, 50);
}

/* A factor for each head is a norm whose weights are equal in each head. */
Test(run_tiny, factors_of_heads_are_norms_of_heads)
{
    float expected[N_LOGITS], logits[N_LOGITS], factors[16], weights[MAX_ELEMENTS];

    tiny_model_make("talkie", false, &model);
    tiny_model_write(&model, &files);
    compute(N_TOKENS, logits);
    for (size_t i = 0; i < model.n_tensors; i++) {
        const struct tiny_tensor *tensor = &model.tensors[i];
        const uint64_t n_head = tensor->ne[1], dim = 8;

        if (strcmp(tiny_kind(tensor), "attn_q_norm.weight") != 0)
            continue;
        cr_assert(tensor->ne[0] == 1 && n_head > 1 && n_head * dim <= MAX_ELEMENTS);
        tiny_fill(tensor, factors);
        for (size_t j = 0; j < n_head * dim; j++)
            weights[j] = factors[j / dim];
        run_files_floats(&files, tensor->name, dim, n_head, 0, weights);
    }
    compute(N_TOKENS, expected);
    numbers_expect_same("logits", logits, expected, N_LOGITS);
}

/* The factors for long contexts apply to contexts beyond the original one, however few tokens. */
Test(run_tiny, long_factors_begin_beyond_the_original_context)
{
    const float ones[] = {1, 1, 1, 1}, eights[] = {8, 8, 8, 8};
    float without[N_LOGITS], at_limit[N_LOGITS], beyond[N_LOGITS];

    tiny_model_make("llama", false, &model);
    cr_assert_lt(model.n_keys, (size_t)TINY_MAX_KEYS);
    model.keys[model.n_keys++] =
        (struct tiny_key){.name = "llama.rope.scaling.original_context_length", .value = "9"};
    for (size_t i = 0; i < model.n_tensors; i++) {
        if (strcmp(model.tensors[i].name, "rope_freqs.weight") == 0)
            model.tensors[i] = model.tensors[--model.n_tensors]; /* it would go first */
    }
    tiny_model_write(&model, &files);
    compute(N_TOKENS, without);
    run_files_floats(&files, "rope_factors_short.weight", COUNT(ones), 0, 0, ones);
    run_files_floats(&files, "rope_factors_long.weight", COUNT(eights), 0, 0, eights);
    compute_in(N_TOKENS, N_TOKENS, at_limit);
    numbers_expect_same("the short factors, 1", at_limit, without, N_LOGITS);
    compute_in(N_TOKENS + 1, N_TOKENS, beyond);
    numbers_expect_same("the first token is not rotated", beyond, without, TINY_N_VOCAB);
    cr_expect_neq(memcmp(beyond, without, sizeof without), 0);
}
