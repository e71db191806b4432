/*
 * The verdicts of the engine on models of the fixtures from which a kind of tensor was dropped,
 * compared with llama.cpp's (fixtures/../design/drop.tsv). Skipped if these files are not there.
 */
#include "contrib/runner/compute/thread_pool.h"
#include "contrib/runner/engine/engine.h"
#include "tests/unit/gguf/model_file.h"
#include "tests/unit/runner/thread_pool_checks.h"
#include "tests/unit/runner/tree_copy.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LAYERS = 8 };

static const char *root(void)
{
    const char *fixtures = getenv("GGUFS_FIXTURES");

    return fixtures ? fixtures : "../shared/fixtures";
}

/* Copy the tree of a model of the fixtures, or return false if it is not there. */
static bool copy_model(const char *name, struct tree_copy *copy)
{
    struct gguf_report report = {0};
    struct gguf_model *model;
    char path[4096];

    snprintf(path, sizeof path, "%s/archs/%s.gguf", root(), name);
    if (access(path, R_OK) != 0)
        return false;
    cr_assert_eq(gguf_open(path, &model, &report), 0, "%s", report.first_error.message);
    tree_copy_make(model, copy);
    gguf_close(model);
    return true;
}

/* Hide or restore the tensors that the pattern "blk.%.NAME" or "NAME" stands for. */
static void move(const struct tree_copy *copy, const char *pattern, bool is_hidden)
{
    const char *percent = strchr(pattern, '%');

    for (int layer = 0; layer < (percent ? MAX_LAYERS : 1); layer++) {
        char name[128], in[300], out[300];

        if (percent)
            snprintf(name, sizeof name, "%.*s%d%s", (int)(percent - pattern), pattern, layer,
                     percent + 1);
        else
            snprintf(name, sizeof name, "%s", pattern);
        snprintf(in, sizeof in, "%s/tensors/%s", copy->path, name);
        snprintf(out, sizeof out, "%s/aside.%s", copy->path, name);
        if (access(is_hidden ? in : out, F_OK) == 0)
            cr_assert_eq(rename(is_hidden ? in : out, is_hidden ? out : in), 0, "%s", name);
    }
}

static bool is_accepted(const struct tree_copy *copy)
{
    const struct run_engine_options options = {.n_context = 8};
    struct run_failure failure = {0};
    struct run_engine *engine;
    struct run_tree tree = tree_copy_open(copy);
    const int code = run_engine_open(tree.metadata, tree.weights, &options, &engine, &failure);

    run_engine_close(engine);
    run_tree_close(&tree);
    return code == 0;
}

static void begin(void)
{
    model_file_begin_test();
    thread_pool_begin_test();
}

TestSuite(run_drop, .init = begin, .fini = run_thread_pool_end);

Test(run_drop, verdicts_of_llama_cpp)
{
    char path[4096], line[512], name[64], previous[64] = "", tensor[128], verdict[8];
    size_t n = 0, n_equal = 0;
    struct tree_copy copy;
    FILE *file;

    snprintf(path, sizeof path, "%s/../design/drop.tsv", root());
    file = fopen(path, "r");
    if (!file)
        cr_skip_test("no fixtures");
    while (fgets(line, sizeof line, file)) {
        bool is_run;

        if (sscanf(line, "%63s %*s %127s %*s %*s %7s", name, tensor, verdict) != 3 ||
            (strcmp(verdict, "yes") != 0 && strcmp(verdict, "no") != 0))
            continue;
        if (strcmp(name, previous) != 0) {
            if (previous[0] != '\0')
                tree_copy_remove(&copy);
            previous[0] = '\0';
            if (!copy_model(name, &copy))
                continue;
            strcpy(previous, name);
        }
        move(&copy, tensor, true);
        is_run = is_accepted(&copy);
        move(&copy, tensor, false);
        n++;
        n_equal += is_run == (strcmp(verdict, "yes") == 0);
        cr_expect(!is_run || strcmp(verdict, "yes") == 0, "%s runs without %s", name, tensor);
    }
    if (previous[0] != '\0')
        tree_copy_remove(&copy);
    fclose(file);
    fprintf(stderr, "drop.tsv: %zu of %zu verdicts are llama.cpp's; the others are stricter\n",
            n_equal, n);
    cr_expect_gt(n_equal, n * 9 / 10, "%zu of %zu", n_equal, n);
}
