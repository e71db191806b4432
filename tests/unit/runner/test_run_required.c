/*
 * Required tensors: those that a row of the architecture table requires, and those that
 * tensors.json lists.
 */
#include "contrib/runner/engine/engine.h"
#include "contrib/runner/engine/required.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

static struct run_files files;
static struct run_part part;
static const struct run_architecture architecture = {.name = "test"};
static const struct run_hparams hparams = {.architecture = &architecture};

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

static void require(const char *names)
{
    run_part_open(&files, &part);
    strcpy(part.loader.prefix, "blk.1.");
    run_require(&part.loader, &hparams, names);
}

static void expect_met(const char *names)
{
    require(names);
    cr_expect_eq(part.loader.code, 0, "\"%s\": %s", names ? names : "", part.failure.text);
    run_part_close(&part);
}

static void expect_missing(const char *names, const char *text)
{
    require(names);
    cr_expect_eq(part.loader.code, -ENOENT, "%s", names);
    cr_expect_str_eq(part.failure.text, text);
    run_part_close(&part);
}

Test(run_required, names_and_alternatives)
{
    expect_met(NULL);
    expect_met("");
    expect_met("a");
    expect_met("a b.bias c");
    expect_met("a.weight x|a y|x|c");
    expect_missing("b.weight",
                   "tensors/blk.1.b.weight: missing; the architecture test requires it");
    expect_missing("x", "tensors/blk.1.x.weight: missing; the architecture test requires it");
    expect_missing("a b", "tensors/blk.1.b.weight: missing; the architecture test requires it");
    expect_missing("a.bias c", "tensors/blk.1.a.bias: missing; the architecture test requires it");
    expect_missing("c.bias|x|y", "tensors/blk.1.c.bias: missing, and so is x|y; the architecture "
                                 "test requires it");
}

/* Check that the list is names of tensors, one space apart. */
static void check_names(const char *row, const char *names)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";

    for (const char *at = names; at;) {
        size_t n = strspn(at, letters);

        cr_expect_gt(n, 1u, "%s: \"%s\" at \"%s\"", row, names, at);
        at += n;
        if (strncmp(at, ".bias", 5) == 0 || strncmp(at, ".scale", 6) == 0)
            at += 1 + strspn(at + 1, letters);
        cr_expect(*at == '\0' || *at == ' ' || *at == '|', "%s: \"%s\" at \"%s\"", row, names, at);
        if (*at != ' ' && *at != '|')
            break;
        at++;
    }
}

/* Without required tensors, an architecture would run with any subset of its tensors. */
Test(run_required, every_row_requires_tensors)
{
    const char *name;

    for (size_t i = 0; (name = run_architecture_name(i)); i++) {
        const struct run_required_tensors *required = &run_architecture_find(name)->required;
        const char *const lists[] = {required->model,     required->layer, required->attention,
                                     required->recurrent, required->dense, required->experts};
        size_t n = 0;

        for (size_t j = 0; j < sizeof lists / sizeof *lists; j++) {
            check_names(name, lists[j]);
            n += lists[j] != NULL;
        }
        cr_expect_gt(n, 0u, "%s", name);
    }
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
    /* Their folders have escaped names, so they are not looked up. */
    expect_list("[{\"name\":\"a/b\"},{\"name\":\"..\"},{\"name\":\"50%\"},{\"name\":\"\\n\"}]", 0,
                "");
    expect_list("[{\"name\":\"blk.1.d\"}]", -ENOENT, "tensors/blk.1.d: missing");
    expect_list("[{\"name\":\"blk.1.c\",\"gguf_name\":\"x\"}]", -ENOENT, "tensors/x: missing");
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
                         "[{\"name\":\"blk.1.c\",\"gguf_name\":\"blk.1.a.weight\"}]");
    tree = run_files_open(&files);
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
    cr_expect_not_null(strstr(part.failure.text, "tensors/blk.1.c/info: the file does not say"));
    cr_expect_not_null(strstr(part.failure.text, "-o era=N"));
    cr_expect_eq(read_info("{\"ggml_type\":0,\"ne\":[1],\"era\":\"2\"}"), -ENOTSUP);
}
