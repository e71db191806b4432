/*
 * Required tensors: those that a row of the architecture table requires, and those that
 * tensors.json lists.
 */
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/engine/loader.h"
#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct run_files files;
static struct run_part part;
static const struct gguf_architecture model = {
    .tensors = {.model = "a b", .layer = "a", .attention = "b.bias q|c (d d.bias)?", .dense = "up"},
    .blocks = GGUF_ONE_BLOCK,
};
static const struct run_hparams hparams = {.model = &model, .name = "test", .n_stored = 2};

static void begin(void)
{
    static const float value = 1;

    run_files_make(&files);
    run_files_metadata(&files, "{}");
    run_files_floats(&files, "blk.1.a.weight", 1, 0, 0, &value);
    run_files_floats(&files, "blk.1.b.bias", 1, 0, 0, &value);
    run_files_floats(&files, "blk.1.c", 1, 0, 0, &value);
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_required, .init = begin, .fini = end);

static void expect_missing(const char *text)
{
    cr_expect_eq(part.loader.code, -ENOENT);
    cr_expect_str_eq(part.failure.text, text);
    part.loader.code = 0;
}

#define REMEDY "; the file is incomplete: get it again, or convert the model again"

Test(run_required, tensors_are_named)
{
    static const float value = 1;

    run_part_open(&files, &part);
    run_require_layer(&part.loader, &hparams, 1);
    cr_expect_eq(part.loader.code, 0, "%s", part.failure.text);
    run_require_layer(&part.loader, &hparams, 3); /* the tensors of layer 1 again */
    cr_expect_eq(part.loader.code, 0, "%s", part.failure.text);
    run_require_ends(&part.loader, &hparams);
    expect_missing("tensors/a.weight: missing; the architecture test requires it" REMEDY);
    run_require_layer(&part.loader, &hparams, 0);
    expect_missing("tensors/blk.0.a.weight: missing; the architecture test requires it" REMEDY);
    run_part_close(&part);

    run_files_floats(&files, "blk.0.a", 1, 0, 0, &value);
    run_part_open(&files, &part);
    run_require_layer(&part.loader, &hparams, 0);
    expect_missing("tensors/blk.0.*: no mixer or feed-forward; layers of the architecture test "
                   "have one" REMEDY);
    run_part_close(&part);

    run_files_floats(&files, "blk.0.d.bias", 1, 0, 0, &value);
    run_files_floats(&files, "blk.0.b.bias", 1, 0, 0, &value);
    run_part_open(&files, &part);
    run_require_layer(&part.loader, &hparams, 0);
    expect_missing("tensors/blk.0.q.weight: missing, and so is c; the architecture test requires "
                   "it" REMEDY);
    run_part_close(&part);

    run_files_floats(&files, "blk.0.q.weight", 1, 0, 0, &value);
    run_part_open(&files, &part);
    run_require_layer(&part.loader, &hparams, 0);
    expect_missing("tensors/blk.0.d.weight: missing; blk.0.d.bias requires it" REMEDY);
    run_part_close(&part);
}

Test(run_required, tensors_of_another_architecture_are_refused)
{
    static const float value = 1;
    struct run_linear linear;

    run_files_floats(&files, "blk.1.x.weight", 1, 0, 0, &value);
    run_part_open(&files, &part);
    part.loader.model = &model;
    strcpy(part.loader.prefix, "blk.1.");
    cr_expect_not_null(run_load_vector(&part.loader, "c", 1), "%s", part.failure.text);
    part.loader.prefix[0] = '\0';
    cr_expect_null(run_load_vector(&part.loader, "blk.1.x.weight", 1));
    cr_expect_str_eq(part.failure.text, "tensors/blk.1.x.weight: the architecture has no such "
                                        "tensor; general.architecture may be wrong");
    part.loader.code = 0;
    run_load_linear(&part.loader, "y", 1, 1, &linear);
    cr_expect_eq(part.loader.code, -ENOENT, "one that is missing is not refused by the lists");
    run_part_close(&part);
}

static void expect_list(const char *list, int code, const char *pattern)
{
    struct run_tree tree;
    int result;

    part.failure.text[0] = '\0';
    run_files_write_text(&files, "tensors.json", list);
    result = run_tree_open(files.path, &tree, &part.failure);
    cr_expect_eq(result, code, "%s: %s", list, part.failure.text);
    if (result == 0)
        run_tree_close(&tree);
    cr_expect_not_null(strstr(part.failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       part.failure.text, pattern);
}

Test(run_required, tensors_json)
{
    expect_list("[]", 0, "");
    expect_list("[\n{\"name\":\"blk.1.c\",\"ne\":[1]},\n{\"name\":\"blk.1.b.bias\"}\n]\n", 0, "");
    expect_list("[{\"name\":\"blk.1.c\",\"gguf_name\":\"blk.1.a.weight\"}]", 0, "");
    expect_list("[{\"name\":\"a/b\",\"path\":\"tensors/a%2Fb\"}]", 0, "");
    expect_list("[{\"name\":\"a/b\"},{\"name\":\"..\"},{\"name\":\"50%\"},{\"name\":\"\\n\"}]", 0,
                "");
    expect_list("{\"name\":\"blk.1.c\"}", -EINVAL, "tensors.json: not a JSON array");
    expect_list("[{\"ne\":[1]}]", -EINVAL, "tensors.json: tensor 0 has no name");
    expect_list("[{\"name\":\"blk.1.c\"}, 2]", -EINVAL, "tensors.json: element 1");
    expect_list("[{\"name\":\"blk.1.c\"}", -EINVAL, "tensors.json");
    expect_list("[] []", -EINVAL, "tensors.json");
}

Test(run_required, unused_tensors_are_counted_once)
{
    struct run_tree tree;
    struct run_tensor tensor;
    const char *names[2];

    /* one tensor with two names */
    run_files_write_text(&files, "tensors.json",
                         "[{\"name\":\"blk.1.c\",\"gguf_name\":\"blk.1.a.weight\",\"ggml_type\":0,"
                         "\"ne\":[1]},{\"name\":\"blk.1.b.bias\",\"ggml_type\":0,\"ne\":[1]}]");
    cr_assert_eq(run_tree_open(files.path, &tree, &part.failure), 0, "%s", part.failure.text);
    cr_expect_eq(run_weights_unused(tree.weights, names, 2), 2u);
    cr_expect_str_eq(names[0], "blk.1.b.bias");
    cr_expect_str_eq(names[1], "blk.1.c");
    cr_assert_eq(run_weights_get(tree.weights, "blk.1.a.weight", &tensor, &part.failure), 0);
    cr_expect_eq(run_weights_unused(tree.weights, names, 1), 1u);
    cr_expect_str_eq(names[0], "blk.1.b.bias");
    cr_assert_eq(run_weights_get(tree.weights, "blk.1.b.bias", &tensor, &part.failure), 0);
    cr_expect_eq(run_weights_unused(tree.weights, NULL, 0), 0u);
    run_tree_close(&tree);
}

static void read_keys(const char *architecture, const char *keys, struct run_hparams *read)
{
    struct run_tree tree;
    char text[500];

    snprintf(text, sizeof text,
             "{\"general.architecture\": \"%s\", \"%s.embedding_length\": 64, "
             "\"%s.block_count\": 4, \"%s.attention.head_count\": 4, %s}",
             architecture, architecture, architecture, architecture, keys);
    run_files_metadata(&files, text);
    run_files_complete_keys(&files, architecture);
    tree = run_files_open(&files);
    cr_assert_eq(run_hparams_read(tree.metadata, read, &part.failure), 0, "%s", part.failure.text);
    run_tree_close(&tree);
}

/* The key in the file does not count if all models have one value. */
Test(run_required, fixed_values_of_keys)
{
    struct run_hparams read;

    read_keys("llama4",
              "\"llama4.attention.temperature_scale\": 0.5, \"llama4.expert_gating_func\": 1, "
              "\"llama4.expert_count\": 4, \"llama4.expert_used_count\": 2",
              &read);
    cr_expect_eq(read.temperature_scale, 0.1f);
    cr_expect_eq(read.temperature_length, 8192u);
    cr_expect(read.temperature_of_unrotated);
    cr_expect(read.experts.gating == RUN_GATE_SIGMOID && !read.experts.weights_normed);
    run_hparams_free(&read);
    read_keys("qwen3moe",
              "\"qwen3moe.expert_weights_norm\": false, \"qwen3moe.expert_count\": 4, "
              "\"qwen3moe.expert_used_count\": 2",
              &read);
    cr_expect(read.experts.gating == RUN_GATE_SOFTMAX && read.experts.weights_normed);
    run_hparams_free(&read);
    read_keys("gemma4", "\"gemma4.attention.scale\": 0.5", &read);
    cr_expect_eq(read.attention_scale, 1);
    run_hparams_free(&read);
}

static int read_info(const char *info)
{
    struct run_tree tree;
    struct run_tensor tensor;
    int code;

    run_files_write_text(&files, "tensors/blk.1.c/info", info);
    tree = run_files_open(&files);
    code = run_weights_get(tree.weights, "blk.1.c", &tensor, &part.failure);
    run_tree_close(&tree);
    return code;
}

Test(run_required, an_unknown_era_is_refused)
{
    cr_expect_eq(read_info("{\"ggml_type\":0,\"ne\":[1],\"era\":2}"), 0);
    cr_expect_eq(read_info("{\"ggml_type\":0,\"ne\":[1],\"era\":null}"), -ENOTSUP);
    cr_expect_not_null(strstr(part.failure.text, "tensors.json: blk.1.c: the file does not say"));
    cr_expect_not_null(strstr(part.failure.text, "-o era=N"));
    cr_expect_eq(read_info("{\"ggml_type\":0,\"ne\":[1],\"era\":\"2\"}"), -ENOTSUP);
}
