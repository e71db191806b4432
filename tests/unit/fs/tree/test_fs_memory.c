/*
 * The memory that ggufs states for a model is what the runner allocates: tiny models of all rows,
 * with the keys, values and states after some tokens, in some models more than a window and a
 * batch.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/engine.h"
#include "fs/tree/tree.h"
#include "fs/tree/views/memory_lines.h"
#include "tests/unit/fs/tiny_file.h"
#include "tests/unit/runner/thread_pool_checks.h"
#include "tests/unit/runner/tree_copy.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_TOKENS = 9, N_MOST = 1100 };

static void begin(void)
{
    if (access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(fs_memory, .init = begin, .fini = run_thread_pool_end);

/* Numbers; each must be above 0 in some model. */
static struct {
    size_t n_models, n_caches, n_states;
} seen;

/* Run the model, and compare. Models that the runner refuses are left out. */
static void compare(const char *name, struct gguf_model *model, uint32_t cache_type, uint32_t n)
{
    const struct run_engine_options options = {.n_context = n, .cache_type = cache_type};
    const struct fs_cache_choice choice = {.n_context = n, .type = cache_type};
    static const int32_t tokens[N_MOST] = {1, 5, 2};
    struct gguf_report report = {0};
    struct run_failure failure;
    struct run_engine *engine;
    struct fs_memory memory;
    struct tree_copy copy;
    struct run_tree runner;
    struct fs_tree *tree;

    cr_assert_eq(fs_tree_make(model, NULL, &tree, &report), 0);
    tree_copy_make(model, &copy);
    runner = tree_copy_open(&copy);
    if (run_engine_open(runner.metadata, runner.weights, &options, &engine, &failure) == 0) {
        const int code = run_engine_feed(engine, tokens, n, RUN_LOGITS_NONE, NULL, &failure);

        cr_expect(fs_memory_compute(tree, &choice, &memory), "%s", name);
        cr_expect_eq(code, 0, "%s: %s", name, failure.text);
        cr_expect_eq(memory.cache_bytes, run_engine_counts(engine).cache_bytes, "%s: %lu, not %lu",
                     name, memory.cache_bytes, run_engine_counts(engine).cache_bytes);
        cr_expect_eq(memory.state_bytes, run_engine_counts(engine).state_bytes,
                     "%s: states %lu, not %lu", name, memory.state_bytes,
                     run_engine_counts(engine).state_bytes);
        /* The runner maps no tensors of the first layer of RWKV 7 and others that it does not use.
         */
        cr_expect_geq(memory.token_bytes, run_engine_counts(engine).token_bytes, "%s", name);
        cr_expect_leq(memory.token_bytes, run_engine_counts(engine).token_bytes * 103 / 100,
                      "%s: %lu", name, memory.token_bytes);
        seen.n_models++;
        seen.n_caches += memory.cache_bytes > 0;
        seen.n_states += memory.state_bytes > 0;
        free(memory.layers);
        run_engine_close(engine);
    }
    run_tree_close(&runner);
    tree_copy_remove(&copy);
    fs_tree_free(tree);
}

Test(fs_memory, is_what_the_runner_allocates)
{
    static const char *const windowed[] = {"gpt-oss", "llama4", "gemma3n", "gemma4", NULL};
    static struct tiny_model tiny;
    const struct gguf_architecture *row;

    for (size_t i = 0; (row = gguf_architecture_at(i)); i++) {
        const bool is_windowed = tiny_is_in(windowed, row->name);
        const uint32_t n = is_windowed ? N_MOST : N_TOKENS;
        const int most = tiny_model_may_have_experts(gguf_architecture_find(row->name));

        for (int has_experts = 0; has_experts <= most; has_experts++) {
            struct gguf_model *model;

            tiny_file_model(row->name, has_experts, true, &tiny);
            model = model_file_make(tiny_file_begin(&tiny, NULL));
            compare(row->name, model, i % 2 ? DEQUANT_F16 : DEQUANT_Q8_0, n);
            gguf_close(model);
        }
    }
    cr_expect_geq(seen.n_models, 100u, "%zu", seen.n_models);
    cr_expect_geq(seen.n_caches, 80u, "%zu", seen.n_caches);
    cr_expect_geq(seen.n_states, 15u, "%zu", seen.n_states);
}
