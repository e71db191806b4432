/* Statistics of tensors, and the files that show them. */
#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/data/statistics.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_statistics, .init = model_file_begin_test);

/* A model with one tensor `t` of type F32. */
static struct gguf_model *model_of(const float *values, uint64_t n)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const uint64_t ne[] = {n % 4 == 0 ? 4 : 1, n % 4 == 0 ? n / 4 : n};

    gguf_writer_add_tensor(w, "t", 1, 2, ne, DEQUANT_F32, values, n * sizeof *values);
    return model_file_make(w);
}

static struct fs_statistics statistics_of(const struct gguf_model *model)
{
    struct fs_statistics statistics;

    cr_assert_eq(fs_statistics_compute(model, &model->tensors[0], NULL, &statistics), 0);
    return statistics;
}

/* Compare with sums in the order of the values, and with a histogram of one value at a time. */
static void check(const struct fs_statistics *statistics, const float *values, uint64_t n)
{
    uint64_t counts[FS_STATISTICS_BINS] = {0}, n_finite = 0, n_zeros = 0, n_nan = 0, n_inf = 0;
    uint64_t first_nan = FS_NOWHERE, first_inf = FS_NOWHERE;
    double sum = 0, squares = 0;
    float min = INFINITY, max = -INFINITY;

    for (uint64_t i = 0; i < n; i++) {
        if (isnan(values[i])) {
            first_nan = n_nan++ == 0 ? i : first_nan;
        } else if (isinf(values[i])) {
            first_inf = n_inf++ == 0 ? i : first_inf;
        } else {
            unsigned bin = 0;

            n_finite++;
            n_zeros += values[i] == 0;
            sum += (double)values[i];
            min = fminf(min, values[i]);
            max = fmaxf(max, values[i]);
            while ((double)values[i] >= fs_histogram_edge(&statistics->histogram, bin + 1))
                bin++;
            cr_assert_geq((double)values[i], fs_histogram_edge(&statistics->histogram, bin));
            cr_assert_lt(bin, FS_STATISTICS_BINS);
            counts[bin]++;
        }
    }
    for (uint64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            squares += pow((double)values[i] - sum / (double)n_finite, 2);
    cr_expect_eq(statistics->n_finite, n_finite);
    cr_expect_eq(statistics->n_zeros, n_zeros);
    cr_expect_eq(statistics->n_nan, n_nan);
    cr_expect_eq(statistics->n_infinite, n_inf);
    cr_expect_eq(statistics->first_nan, first_nan);
    cr_expect_eq(statistics->first_infinite, first_inf);
    cr_expect_arr_eq(statistics->histogram.counts, counts, sizeof counts);
    if (n_finite == 0)
        return;
    cr_expect_eq(statistics->min, min);
    cr_expect_eq(statistics->max, max);
    cr_expect_float_eq(statistics->mean, sum / (double)n_finite, 1e-12 * (double)fmaxf(max, -min));
    cr_expect_float_eq(fs_standard_deviation(statistics), sqrt(squares / (double)n_finite),
                       1e-12 * (double)(max - min) + 1e-300);
    /* The bins are as fine as they can be. */
    if (max > min && statistics->histogram.exponent > ilogbf(fmaxf(max, -min)) - 23) {
        const double half = ldexp(1, statistics->histogram.exponent - 1);

        cr_expect_geq(floor((double)max / half) - floor((double)min / half), FS_STATISTICS_BINS);
    }
}

static float random_float(uint64_t *state)
{
    const uint64_t bits = model_file_random(state);

    return (float)((int)(bits % 2000001) - 1000000) / 1e6F;
}

Test(fs_statistics, of_random_values)
{
    /* One value; a chunk, with one more or less; several pieces. */
    static const uint64_t lengths[] = {1, 2, 7, 9, 16383, 16384, 16385, 300001, 1000000};
    uint64_t state = 1;

    for (size_t i = 0; i < COUNT(lengths); i++) {
        const uint64_t n = lengths[i];
        float *values = calloc(n, sizeof *values);
        struct fs_statistics statistics;
        struct gguf_model *model;

        for (uint64_t j = 0; j < n; j++)
            values[j] = random_float(&state) * (j > n / 2 ? 1e-3F : 1);
        if (n > 20000) {
            values[n - 5] = 17;
            values[17000] = NAN;
            values[n - 1] = NAN;
            values[16390] = -INFINITY;
            values[16391] = INFINITY;
            values[3] = 0;
            values[n - 9] = -0.0F;
        }
        model = model_of(values, n);
        statistics = statistics_of(model);
        check(&statistics, values, n);
        gguf_close(model);
        free(values);
    }
}

Test(fs_statistics, of_special_values)
{
    static const float cases[][8] = {
        {0, 0, 0, 0, 0, 0, 0, 0},
        {-0.0F, 0, -0.0F, 0, 0, 0, 0, 0},
        {1, 1, 1, 1, 1, 1, 1, 1},
        {1e-45F, -1e-45F, 3e-45F, 0, 0, 1e-44F, 0, 0},
        {1e-45F, 1e-45F, 1e-45F, 1e-45F, 1e-45F, 1e-45F, 1e-45F, 1e-45F},
        {-1e-45F, 3.4028235e38F, -3.4028235e38F, 0, 0, 0, 0, 1},
        {1, 1.0000001F, 1.0000002F, 1, 1, 1, 1, 1},
        {-1, -1e-30F, 63.99F, 0, 1e-30F, 0, 0, 0},
        {-3.4028235e38F, -3.4028235e38F, -1, -1, -1, -1, -1, -1},
        {NAN, NAN, NAN, NAN, INFINITY, -INFINITY, NAN, NAN},
        {INFINITY, 5, NAN, 5, 5, 5, 5, 5},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct gguf_model *model = model_of(cases[i], 8);
        const struct fs_statistics statistics = statistics_of(model);

        check(&statistics, cases[i], 8);
        gguf_close(model);
    }
}

/* The result is the same for any number of threads. */
Test(fs_statistics, do_not_depend_on_threads)
{
    const uint64_t n = 3000000;
    float *values = calloc(n, sizeof *values);
    struct fs_statistics first = {0};
    struct gguf_model *model;
    uint64_t state = 2;
    cpu_set_t all, some;

    CPU_ZERO(&some);
    for (uint64_t i = 0; i < n; i++)
        values[i] = random_float(&state);
    model = model_of(values, n);
    sched_getaffinity(0, sizeof all, &all);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        struct fs_statistics statistics;

        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_SET(cpu, &some); /* as many threads as processors */
        cr_assert_eq(sched_setaffinity(0, sizeof some, &some), 0);
        statistics = statistics_of(model);
        if (CPU_COUNT(&some) == 1)
            first = statistics;
        cr_expect_arr_eq(&first.mean, &statistics.mean, sizeof first.mean);
        cr_expect_arr_eq(&first.squares, &statistics.squares, sizeof first.squares);
        cr_expect_arr_eq(&first.histogram, &statistics.histogram, sizeof first.histogram);
    }
    gguf_close(model);
    free(values);
}

/* Return true from the second call on. */
static bool is_second(void *user)
{
    return ++*(int *)user > 1;
}

Test(fs_statistics, can_be_interrupted)
{
    const uint64_t n = 3000000;
    float *values = calloc(n, sizeof *values);
    struct gguf_model *model = model_of(values, n);
    struct fs_tree *tree = tree_file_make_tree(model);
    const fs_node_index node = tree_file_find(tree, "tensors/t/stats.json");
    int n_calls = 0;
    const struct fs_interrupt interrupt = {.check = is_second, .user = &n_calls};
    const struct fs_image *image;
    uint64_t size_bytes;

    cr_assert_eq(fs_tree_size(tree, node, &interrupt, &size_bytes), 0);
    cr_assert_eq(n_calls, 0, "the size needs no statistics");
    cr_assert_eq(fs_tree_open(tree, node, &interrupt, &image), -EINTR);
    cr_assert_eq(n_calls, 2);
    cr_assert_eq(fs_tree_open(tree, node, NULL, &image), 0);
    fs_tree_close(tree, image);
    cr_assert_eq(fs_tree_open(tree, node, &interrupt, &image), 0, "statistics are kept");
    cr_assert_eq(image->size_bytes, size_bytes);
    fs_tree_close(tree, image);
    fs_tree_free(tree);
    gguf_close(model);
    free(values);
}

static double number_of(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItem(json, name);

    cr_assert(cJSON_IsNumber(item), "%s", name);
    return item->valuedouble;
}

Test(fs_statistics, are_shown_as_json)
{
    static const float values[] = {1, -2, 0, 4, NAN, 6, 7, INFINITY, 0, 0, 0, -INFINITY};
    struct gguf_model *model = model_of(values, COUNT(values));
    struct fs_tree *tree = tree_file_make_tree(model);
    struct tree_file file = tree_file_read(tree, "tensors/t/stats.json");
    static const char head[] = "{\n  \"count\": 12,\n  \"min\": -2.0,";
    cJSON *json = tree_file_parse(&file), *place;

    cr_expect_eq(strncmp(file.bytes, head, strlen(head)), 0, "one member per line: %s", file.bytes);
    cr_expect_eq(number_of(json, "count"), 12);
    cr_expect_eq(number_of(json, "min"), -2);
    cr_expect_eq(number_of(json, "max"), 7);
    cr_expect_float_eq(number_of(json, "mean"), 16.0 / 9, 1e-15);
    cr_expect_eq(number_of(json, "zeros"), 4);
    cr_expect_eq(number_of(json, "nan"), 1);
    cr_expect_eq(number_of(json, "inf"), 2);
    cr_expect_eq(number_of(json, "histogram_step"), 0.25);
    cr_expect_eq(number_of(json, "histogram_start"), -2);
    cr_expect_eq(cJSON_GetArraySize(cJSON_GetObjectItem(json, "histogram")), FS_STATISTICS_BINS);
    place = cJSON_GetObjectItem(json, "first_inf");
    cr_expect_eq(number_of(place, "index"), 7);
    place = cJSON_GetObjectItem(place, "at");
    cr_expect_eq(cJSON_GetArrayItem(place, 0)->valueint, 1);
    cr_expect_eq(cJSON_GetArrayItem(place, 1)->valueint, 3);
    cr_expect_null(cJSON_GetObjectItem(json, "blocks"));
    cJSON_Delete(json);
    free(file.bytes);
    fs_tree_free(tree);
    gguf_close(model);
}

/* Count the blocks whose f16 scale is subnormal, the largest number or beyond. */
Test(fs_statistics, count_scales_at_their_limit)
{
    static const uint16_t scales[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00,
                                      0x7bfe, 0x7bff, 0xfbff, 0x7c00, 0x7e00};

    for (int big_endian = 0; big_endian < 2; big_endian++) {
        struct gguf_writer *w = gguf_writer_open(3, big_endian);
        const uint64_t n_elements = 32 * COUNT(scales);
        uint8_t blocks[COUNT(scales)][34] = {0};
        struct fs_statistics statistics;
        struct gguf_model *model;

        for (size_t i = 0; i < COUNT(scales); i++) {
            blocks[i][big_endian] = (uint8_t)scales[i];
            blocks[i][!big_endian] = (uint8_t)(scales[i] >> 8);
        }
        gguf_writer_add_tensor(w, "t", 1, 1, &n_elements, DEQUANT_Q8_0, blocks, sizeof blocks);
        model = model_file_make(w);
        statistics = statistics_of(model);
        cr_expect_eq(statistics.n_blocks, COUNT(scales));
        cr_expect_eq(statistics.n_scales_at_limit, 6);
        gguf_close(model);
    }
}
