/*
 * The models of rwkv.cpp's own test, if the fixtures have them, with its input. FP32 files must
 * give its logits; the tolerance of the others depends on their quantization.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/engine.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/tree_copy.h"
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_VOCAB = 256 };

static const int32_t tokens[] = {'"', 'i', 'n'};

static const char *fixture(const char *kind, const char *name)
{
    static char path[4096];
    const char *root = getenv("GGUFS_FIXTURES");

    snprintf(path, sizeof path, "%s/rwkv/%s%s.bin", root ? root : "../shared/fixtures", kind, name);
    return path;
}

/* Read the expected logits. Returns false if there are no fixtures. */
static bool read_expected(const char *version, float expected[N_VOCAB])
{
    FILE *file = fopen(fixture("expected-logits-", version), "rb");

    if (!file)
        return false;
    cr_assert_eq(fread(expected, sizeof *expected, N_VOCAB, file), (size_t)N_VOCAB);
    fclose(file);
    return true;
}

static void feed(const struct run_tree *tree, uint32_t n_batch, float logits[N_VOCAB])
{
    const struct run_engine_options options = {.n_batch = n_batch};
    struct run_failure failure = {0};
    struct run_engine *engine;

    cr_assert_eq(run_engine_open(tree->metadata, tree->weights, &options, &engine, &failure), 0,
                 "%s", failure.text);
    cr_assert_eq(run_engine_counts(engine).n_vocab, (uint32_t)N_VOCAB);
    cr_assert_eq(run_engine_feed(engine, tokens, COUNT(tokens), RUN_LOGITS_LAST, logits, &failure),
                 0, "%s", failure.text);
    run_engine_close(engine);
}

static void run(const char *name, float logits[N_VOCAB])
{
    struct gguf_report report = {0};
    float one_by_one[N_VOCAB];
    struct gguf_model *model;
    struct tree_copy copy;
    struct run_tree tree;

    cr_assert_eq(gguf_open(fixture("tiny-rwkv-", name), &model, &report), 0, "%s",
                 report.first_error.message);
    tree_copy_make(model, &copy);
    gguf_close(model);
    tree = tree_copy_open(&copy);
    feed(&tree, 0, logits);
    feed(&tree, 1, one_by_one);
    cr_expect_eq(memcmp(logits, one_by_one, sizeof one_by_one), 0, "%s: batches differ", name);
    run_tree_close(&tree);
    tree_copy_remove(&copy);
}

static void begin(void)
{
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(run_rwkv_files, .init = begin, .fini = run_thread_pool_end);

Test(run_rwkv_files, logits_are_as_expected)
{
    /* `error`: largest sum of squared differences, relative to the sum of squares expected. */
    static const struct {
        const char *version, *type;
        double error;
    } files[] = {
        {"4v0-660K", "FP32", 1e-12}, {"4v0-660K", "Q5_0", 5e-4}, {"5v1-730K", "FP16", 1e-6},
        {"5v2-730K", "FP32", 1e-12}, {"5v2-730K", "Q5_1", 1e-2}, {"6v0-3m", "Q5_1", 5e-6},
        {"7v0-834K", "FP32", 1e-12}, {"7v0-834K", "Q5_1", 1e-5},
    };

    for (size_t i = 0; i < COUNT(files); i++) {
        float logits[N_VOCAB], expected[N_VOCAB];
        double sum = 0, squares = 0, expected_squares = 0;
        char name[64];

        if (!read_expected(files[i].version, expected)) {
            fprintf(stderr, "SKIPPED: no %s (set GGUFS_FIXTURES to the fixtures folder)\n",
                    fixture("expected-logits-", files[i].version));
            cr_skip_test("no fixtures");
        }
        snprintf(name, sizeof name, "%s-%s", files[i].version, files[i].type);
        run(name, logits);
        for (size_t j = 0; j < N_VOCAB; j++) {
            const double difference = (double)logits[j] - (double)expected[j];

            sum += difference;
            squares += difference * difference;
            expected_squares += (double)expected[j] * (double)expected[j];
        }
        cr_expect_lt(squares / expected_squares, files[i].error, "%s: %g", name,
                     squares / expected_squares);
        if (strcmp(files[i].type, "FP32") == 0)
            cr_expect_lt(fabs(sum), 0.001, "%s: %g", name, sum);
    }
}
