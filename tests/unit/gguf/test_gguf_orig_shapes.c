/* Original shapes of tensors, from keys of image models. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gguf/orig_shapes.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(gguf_orig_shapes, .init = model_file_begin_test);

#define PREFIX "comfy.gguf.orig_shape."

static void count_warnings(void *user, const struct gguf_finding *finding)
{
    struct model_notes *found = user;

    cr_expect_eq(finding->rule, GGUF_RULE_ORIGINAL_SHAPE);
    found->count++;
    found->last = *finding;
}

/* Write a key with a shape whose dimensions are 1 but for the last, which is `last`. */
static void add_shape(struct gguf_writer *w, const char *key, uint64_t n_dims, int32_t last)
{
    gguf_writer_add_array(w, key, GGUF_WRITER_I32, n_dims);
    for (uint64_t i = 0; i < n_dims; i++)
        gguf_writer_i32(w, i + 1 < n_dims ? 1 : last);
}

/* A tensor "t" of six elements, and a tensor without a name. */
static const struct {
    const char *key;
    uint64_t n_dims;
    int32_t last;
    uint32_t expected_dims; /* of "t"; 0: none */
    size_t n_warnings;
} cases[] = {
    {PREFIX "t", 1, 6, 1, 0},
    {PREFIX "t", GGUF_MAX_DIMS, 6, GGUF_MAX_DIMS, 0},
    {PREFIX "t", 0, 0, 0, 1},
    {PREFIX "t", GGUF_MAX_DIMS + 1, 6, 0, 1},
    {PREFIX "t", 2, 5, 0, 1},
    {PREFIX "t", 1, -6, 0, 1},
    {PREFIX "u", 1, 6, 0, 1}, /* unknown tensor */
    {PREFIX, 1, 6, 0, 0},     /* without a name */
    {"comfy.gguf.orig_shape_t", 1, 5, 0, 0},
};

Test(gguf_orig_shapes, limits_and_names)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct model_notes found = {0};
        struct gguf_report report = {.each = count_warnings, .user = &found};
        struct gguf_shape *shapes;
        struct gguf_model *model;

        add_shape(w, cases[i].key, cases[i].n_dims, cases[i].last);
        gguf_writer_add_tensor(w, "t", 1, 2, (uint64_t[]){3, 2}, 0, NULL, 24);
        gguf_writer_add_tensor(w, "", 0, 2, (uint64_t[]){3, 2}, 0, NULL, 24);
        model = model_file_make(w);
        cr_assert_eq(gguf_find_orig_shapes(model, &shapes, &report), 0);
        cr_expect_eq(found.count, cases[i].n_warnings, "%zu: %s", i, found.last.message);
        if (cases[i].expected_dims == 0) {
            cr_expect(!shapes || shapes[0].n_dims == 0, "%zu", i);
        } else {
            cr_assert_not_null(shapes, "%zu", i);
            cr_expect_eq(shapes[0].n_dims, cases[i].expected_dims, "%zu", i);
            cr_expect_eq(shapes[0].dims[cases[i].expected_dims - 1], 6u, "%zu", i);
        }
        cr_expect(!shapes || shapes[1].n_dims == 0, "%zu", i);
        free(shapes);
        gguf_close(model);
    }
}
