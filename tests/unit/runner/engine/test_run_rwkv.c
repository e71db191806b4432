/*
 * Whole RWKV models with random weights: expected logits, the same logits for any batches and after
 * a reset, and refusal of incomplete models.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/engine.h"
#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/rwkv_models.h"
#include "tests/unit/runner/tree_copy.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int32_t tokens[] = {3, 17, 0, 23, 5, 5, 11, 8, 20, 1, 14, 9};

enum { N_TOKENS = COUNT(tokens), N_EXPECTED = 8 };

typedef float logits_of_all[N_TOKENS][RWKV_N_VOCAB];

static const struct {
    const char *name;
    uint32_t version; /* value of the key */
    bool is_expected;
    float expected[N_EXPECTED]; /* first logits of the last token, computed by llama.cpp, which has
                                   no versions before 6 */
} models[RWKV_MODELS] = {
    [RWKV_4] = {.name = "4", .version = 4},
    [RWKV_5_1] = {.name = "5.1", .version = 5},
    [RWKV_5_2] = {.name = "5.2", .version = 5},
    [RWKV_6] = {"6",
                6,
                true,
                {1.258397f, -0.950834f, -0.943179f, -0.681531f, 0.944588f, 1.060021f, 1.437928f,
                 -0.035458f}},
    [RWKV_7] = {"7",
                7,
                true,
                {-0.033766f, -1.063970f, 0.512565f, -0.929612f, 0.180640f, 1.039488f, 0.286565f,
                 -0.490051f}},
    [RWKV_6_QWEN2] = {"6 of Qwen",
                      6,
                      true,
                      {-1.658002f, 1.320616f, -0.287748f, 0.344457f, 0.558400f, -0.598074f,
                       -0.499229f, 0.262583f}},
    [RWKV_7_QWEN2] = {"7 of Qwen",
                      7,
                      true,
                      {-2.236523f, -1.898091f, 1.248494f, -0.144121f, 0.472249f, -0.872036f,
                       -0.543647f, -0.640354f}},
};

static void copy_model(enum rwkv_model kind, uint32_t head_size, uint32_t version,
                       struct tree_copy *copy)
{
    struct gguf_model *model = model_file_make(rwkv_model_write(kind, head_size, version));

    tree_copy_make(model, copy);
    gguf_close(model);
}

static void feed(struct run_engine *engine, size_t first, size_t n, logits_of_all logits)
{
    struct run_failure failure = {0};

    cr_assert_eq(
        run_engine_feed(engine, tokens + first, n, RUN_LOGITS_ALL, logits[first], &failure), 0,
        "%s", failure.text);
}

/* Check that batches, several calls and a reset after other tokens give the same logits. */
static void expect_same(struct run_tree *tree, const char *name, logits_of_all expected)
{
    const struct run_engine_options options = {.n_batch = 5};
    struct run_failure failure = {0};
    logits_of_all logits;
    struct run_engine *engine;

    cr_assert_eq(run_engine_open(tree->metadata, tree->weights, &options, &engine, &failure), 0,
                 "%s: %s", name, failure.text);
    feed(engine, 0, N_TOKENS, logits);
    cr_expect_eq(memcmp(logits, expected, sizeof logits), 0, "%s: in batches", name);
    run_engine_reset(engine);
    feed(engine, 0, 1, logits);
    feed(engine, 1, 7, logits);
    for (size_t i = 8; i < N_TOKENS; i++)
        feed(engine, i, 1, logits);
    cr_expect_eq(memcmp(logits, expected, sizeof logits), 0, "%s: in calls", name);
    feed(engine, 2, 3, logits);
    run_engine_reset(engine);
    feed(engine, 0, N_TOKENS, logits);
    cr_expect_eq(memcmp(logits, expected, sizeof logits), 0, "%s: after a reset", name);
    run_engine_close(engine);
}

static void begin(void)
{
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(run_rwkv, .init = begin, .fini = run_thread_pool_end);

Test(run_rwkv, logits_are_as_expected)
{
    for (enum rwkv_model kind = 0; kind < RWKV_MODELS; kind++) {
        const struct run_engine_options options = {0};
        struct run_failure failure = {0};
        logits_of_all logits;
        struct run_engine *engine;
        struct tree_copy copy;
        struct run_tree tree;

        copy_model(kind, RWKV_HEAD_SIZE, models[kind].version, &copy);
        tree = tree_copy_open(&copy);
        cr_assert_eq(run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure), 0,
                     "%s: %s", models[kind].name, failure.text);
        cr_expect_not(run_engine_can_rewind(engine), "%s", models[kind].name);
        feed(engine, 0, N_TOKENS, logits);
        for (size_t i = 0; i < N_EXPECTED && models[kind].is_expected; i++)
            cr_expect_lt(fabsf(logits[N_TOKENS - 1][i] - models[kind].expected[i]), 2e-5f,
                         "%s, logit %zu: %g", models[kind].name, i,
                         (double)logits[N_TOKENS - 1][i]);
        for (size_t i = 0; i < RWKV_N_VOCAB; i++)
            cr_expect(isfinite(logits[N_TOKENS - 1][i]), "%s", models[kind].name);
        run_engine_close(engine);
        expect_same(&tree, models[kind].name, logits);
        run_tree_close(&tree);
        tree_copy_remove(&copy);
    }
}

/* Open the copy and compute logits. Returns 0 or a negative errno. */
static int try_model(const struct tree_copy *copy)
{
    const struct run_engine_options options = {0};
    struct run_failure failure = {0};
    struct run_engine *engine = NULL;
    struct run_tree tree;
    logits_of_all logits;
    int code = run_tree_open(copy->path, &tree, &failure);

    if (code == 0)
        code = run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure);
    if (code == 0)
        feed(engine, 0, N_TOKENS, logits);
    else
        cr_expect_gt(strlen(failure.text), 0u);
    run_engine_close(engine);
    run_tree_close(&tree);
    return code;
}

/* Check that the model is refused without the tensor, and with another tensor in its place. */
static void break_tensor(void *user, const char *name)
{
    const struct tree_copy *copy = user;
    const bool is_wide =
        strcmp(name, "token_embd.weight") == 0 || strcmp(name, "output.weight") == 0;

    tree_copy_hide(copy, name, NULL);
    cr_expect_lt(try_model(copy), 0, "without %s", name);
    tree_copy_restore(copy, name);
    tree_copy_hide(copy, name, is_wide ? "output_norm.weight" : "token_embd.weight");
    cr_expect_lt(try_model(copy), 0, "with a wrong %s", name);
    tree_copy_restore(copy, name);
}

static void expect_needed(void *user, const char *name)
{
    const struct tree_copy *copy = user;

    tree_copy_hide(copy, name, NULL);
    cr_expect_eq(try_model(copy), -ENOENT, "without %s", name);
    tree_copy_restore(copy, name);
}

Test(run_rwkv, every_listed_tensor_is_required)
{
    for (enum rwkv_model kind = 0; kind < RWKV_MODELS; kind++) {
        struct tree_copy copy;

        copy_model(kind, RWKV_HEAD_SIZE, models[kind].version, &copy);
        rwkv_model_each(kind, expect_needed, &copy);
        cr_expect_eq(try_model(&copy), 0);
        tree_copy_remove(&copy);
    }
}

Test(run_rwkv, missing_and_wrong_tensors_are_refused)
{
    for (enum rwkv_model kind = 0; kind < RWKV_MODELS; kind++) {
        struct tree_copy copy;

        copy_model(kind, RWKV_HEAD_SIZE, models[kind].version, &copy);
        rwkv_model_each(kind, break_tensor, &copy);
        cr_expect_eq(try_model(&copy), 0);
        tree_copy_remove(&copy);
    }
}

Test(run_rwkv, wrong_versions_and_head_sizes_are_refused)
{
    static const struct {
        enum rwkv_model model;
        uint32_t head_size, version;
    } wrong[] = {
        {RWKV_7, 0, 7},          {RWKV_7, 63, 7},       {RWKV_7, 256, 7}, {RWKV_7, UINT32_MAX, 7},
        {RWKV_7, 64, 3},         {RWKV_7, 64, 8},       {RWKV_7, 64, 6},  {RWKV_7, 64, 5},
        {RWKV_7, 64, 4},         {RWKV_6, 64, 7},       {RWKV_6, 64, 5},  {RWKV_6, 64, 4},
        {RWKV_6_QWEN2, 128, 6},  {RWKV_6_QWEN2, 64, 5}, {RWKV_4, 64, 5},  {RWKV_4, 64, 7},
        {RWKV_5_2, 64, 4},       {RWKV_5_2, 64, 6},     {RWKV_5_2, 0, 5}, {RWKV_5_1, 32, 5},
        {RWKV_7_QWEN2, 1000, 7},
    };

    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct tree_copy copy;

        copy_model(wrong[i].model, wrong[i].head_size, wrong[i].version, &copy);
        cr_expect_lt(try_model(&copy), 0, "%s, heads of %u, version %u",
                     models[wrong[i].model].name, wrong[i].head_size, wrong[i].version);
        tree_copy_remove(&copy);
    }
}
