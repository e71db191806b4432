/* Comparisons of two tensors. */
#include "fs/tree/data/comparison.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/gguf/model_file.h"

enum { N = 20 };

static struct gguf_model *models[2];
static int descriptors[2];

/* Open two models with a tensor, the numbers from 1 and their double. */
static void begin(void)
{
    model_file_begin_test();
    for (int k = 0; k < 2; k++) {
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct gguf_report report = {0};
        struct model_bytes bytes;
        float values[N];

        for (int i = 0; i < N; i++)
            values[i] = (float)((1 + k) * (1 + i));
        gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){N}, 0, values, sizeof values);
        bytes = model_file_finish(w);
        descriptors[k] = model_file_create(bytes.data, bytes.size_bytes);
        cr_assert_eq(model_file_open_descriptor(descriptors[k], &models[k], &report), 0);
        free(bytes.data);
    }
}

static void end(void)
{
    for (int k = 0; k < 2; k++) {
        gguf_close(models[k]);
        close(descriptors[k]);
    }
}

TestSuite(fs_comparison, .init = begin, .fini = end);

static int compare(struct fs_comparison *comparison, unsigned *failed)
{
    const struct fs_tensor_of pair[2] = {{models[0], &models[0]->tensors[0]},
                                         {models[1], &models[1]->tensors[0]}};

    *comparison = (struct fs_comparison){0};
    return fs_compare_tensors(pair, comparison, failed);
}

Test(fs_comparison, sums_and_the_largest_difference)
{
    const double squares = N * (N + 1) * (2 * N + 1) / 6;
    struct fs_comparison comparison;
    unsigned failed;

    cr_assert_eq(compare(&comparison, &failed), 0);
    cr_expect_eq(comparison.products.aa, squares);
    cr_expect_eq(comparison.products.bb, 4 * squares);
    cr_expect_eq(comparison.products.ab, 2 * squares);
    cr_expect_eq(comparison.products.dd, squares);
    cr_expect_eq(comparison.products.largest, N);
    cr_expect_eq(comparison.largest_at, (uint64_t)N - 1);
    cr_expect_eq(comparison.n_not_finite, 0u);
}

/* The end of a mapped page still reads, as zeros. */
Test(fs_comparison, a_file_that_became_shorter_is_named)
{
    for (unsigned k = 2; k-- > 0;) {
        const uint64_t size_bytes = models[k]->files[0].source.size_bytes;
        struct fs_comparison comparison;
        unsigned failed = 2;

        cr_assert_eq(ftruncate(descriptors[k], (off_t)size_bytes - 64), 0);
        cr_expect_eq(compare(&comparison, &failed), -EIO);
        cr_expect_eq(failed, k);
    }
}
