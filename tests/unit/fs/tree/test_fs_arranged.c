/* Arrangements: every slice has the elements that their definition names, converted one by one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dequant/kernels.h"
#include "dequant/rows.h"
#include "dequant/small_floats.h"
#include "fs/tree/core/text.h"
#include "fs/tree/data/tensor_segments.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_arranged, .init = model_file_begin_test);

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { GUARD = 0xa5 };

/* The ids of the types that arrays are read as. */
static const uint32_t formats[] = {DEQUANT_F32, DEQUANT_F16, DEQUANT_BF16};

static void add_tensor(struct gguf_writer *w, const char *name, uint32_t type_id,
                       uint64_t row_elements, uint64_t n_rows)
{
    const struct dequant_type *type = dequant_type_by_id(type_id);
    uint64_t state = type_id + row_elements, size_bytes;
    unsigned char *data;

    cr_assert_eq(dequant_rows_bytes(type, row_elements, n_rows, &size_bytes), 0);
    data = malloc(size_bytes);
    cr_assert_not_null(data);
    for (size_t i = 0; i < size_bytes; i++)
        data[i] = (unsigned char)(model_file_random(&state) >> 32);
    /* No signalling NaN, which is quiet once it has been converted, but not where it is stored. */
    for (size_t i = 0; type->block_elements == 1 && i < size_bytes; i++)
        data[i] &= 0xbf;
    gguf_writer_add_tensor(w, name, strlen(name), 2, (uint64_t[]){row_elements, n_rows}, type_id,
                           data, size_bytes);
    free(data);
}

/* All values of a tensor; free them. */
static float *values_of(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    const uint64_t n_bytes = tensor->n_elements * sizeof(float);
    float *values = malloc(n_bytes);
    struct fs_image image;

    cr_assert_not_null(values);
    fs_image_begin(&image, model);
    cr_assert_eq(fs_image_add_elements(&image, tensor, dequant_type_by_id(DEQUANT_F32)), 0);
    cr_assert_eq(fs_image_read(&image, 0, n_bytes, (char *)values), (ssize_t)n_bytes);
    fs_image_free(&image);
    return values;
}

static float map(const struct fs_arrangement *of, float value)
{
    if (of->map == GGUF_MAP_ADD)
        return value + of->constant;
    return of->map == GGUF_MAP_LOG_OF_NEGATED ? (float)log(-(double)value) : value;
}

/* Write a number of a type. Returns its end. */
static char *put(uint32_t type_id, const struct fs_arrangement *of, float value, char *out)
{
    const float mapped = map(of, value);
    uint16_t half =
        type_id == DEQUANT_F16 ? dequant_f32_to_f16(mapped) : dequant_f32_to_bf16(mapped);

    if (type_id == DEQUANT_F32) {
        memcpy(out, &mapped, sizeof mapped);
        return out + sizeof mapped;
    }
    memcpy(out, &half, sizeof half);
    return out + sizeof half;
}

/* The array as its definition says, element by element; free it. */
static char *expected_bytes(const struct fs_arrangement *of, float *const values[2],
                            uint32_t type_id, size_t *size_bytes)
{
    uint64_t n_elements = 1;
    char *bytes, *end;

    for (unsigned i = 0; i < of->n_dims; i++)
        n_elements *= of->size[i];
    end = bytes = malloc(n_elements * sizeof(float) + 1);
    cr_assert_not_null(bytes);
    for (uint64_t element = 0; element < n_elements; element++) {
        uint64_t rest = element, position = 0;
        unsigned t = 0;

        for (unsigned i = of->n_dims; i-- > 0;) {
            const uint64_t index = rest % of->size[i];

            rest /= of->size[i];
            if (of->tensors[1] && i == of->which_dim)
                t = (unsigned)index;
            else
                position += index * of->stride[i];
        }
        end = put(type_id, of, values[t][of->first[t] + position], end);
    }
    *size_bytes = (size_t)(end - bytes);
    return bytes;
}

static void check_slice(const struct fs_image *image, const char *expected, uint64_t offset,
                        size_t length, char *out)
{
    out[0] = (char)GUARD;
    out[length + 1] = (char)GUARD;
    cr_assert_eq(fs_image_read(image, offset, length, out + 1), (ssize_t)length,
                 "%zu bytes from %zu", length, (size_t)offset);
    cr_assert(memcmp(out + 1, expected + offset, length) == 0, "%zu bytes from %zu", length,
              (size_t)offset);
    cr_assert(out[0] == (char)GUARD && out[length + 1] == (char)GUARD);
}

static void check(const struct gguf_model *model, const struct fs_arrangement *of)
{
    float *values[2] = {values_of(model, of->tensors[0]),
                        of->tensors[1] ? values_of(model, of->tensors[1]) : NULL};

    for (size_t j = 0; j < COUNT(formats); j++) {
        const struct dequant_type *type = dequant_type_by_id(formats[j]);
        struct fs_image image;
        uint64_t state = 5;
        size_t size_bytes;
        char *expected = expected_bytes(of, values, type->id, &size_bytes);
        char *out = malloc(size_bytes + 2);

        cr_assert_not_null(out);
        fs_image_begin(&image, model);
        cr_assert_eq(fs_image_add_arranged(&image, of, type), 0);
        cr_assert_eq(image.size_bytes, size_bytes);
        check_slice(&image, expected, 0, size_bytes, out);
        for (int i = 0; i < 12; i++) {
            const uint64_t offset = model_file_random(&state) % size_bytes;
            const uint64_t most = i % 4 ? 100 : size_bytes;
            const uint64_t length = model_file_random(&state) % most;

            check_slice(&image, expected, offset,
                        length < size_bytes - offset ? length : size_bytes - offset, out);
        }
        for (size_t length = 1; length < 40 && length <= size_bytes; length += 1 + length / 8)
            check_slice(&image, expected, size_bytes - length, length, out);
        fs_image_free(&image);
        free(expected);
        free(out);
    }
    free(values[0]);
    free(values[1]);
}

/* The arrangements below, of tensors with 64 rows of 512. */
enum { ROWS = 64, ROW = 512 };

static const struct fs_arrangement arrangements[] = {
    /* as stored, one element, a part */
    {.n_dims = 2, .size = {ROWS, ROW}, .stride = {ROW, 1}},
    {.n_dims = 0, .first = {77}},
    {.n_dims = 3, .first = {3 * ROW}, .size = {1, 10, ROW}, .stride = {0, ROW, 1}},
    /* columns */
    {.n_dims = 2, .first = {7}, .size = {ROWS, 100}, .stride = {ROW, 1}},
    /* rows permuted, as in the queries of llama: four heads of 2 × 8 rows */
    {.n_dims = 4, .size = {4, 2, 8, ROW}, .stride = {16 * ROW, ROW, 2 * ROW, 1}},
    /* elements permuted in the same way */
    {.n_dims = 3, .size = {ROWS * 4, 2, 64}, .stride = {128, 1, 2}},
    /* transposed; of each of four matrices; a part */
    {.n_dims = 2, .size = {ROW, ROWS}, .stride = {1, ROW}},
    {.n_dims = 3, .size = {4, ROW, 16}, .stride = {16 * ROW, 1, ROW}},
    {.n_dims = 2, .first = {5 * ROW + 100}, .size = {300, 37}, .stride = {1, ROW}},
    /* every third column and every seventh, transposed */
    {.n_dims = 2, .first = {1}, .size = {170, ROWS}, .stride = {3, ROW}},
    {.n_dims = 2, .first = {2}, .size = {70, ROWS}, .stride = {7, ROW}},
    /* all dimensions reversed, and in other orders */
    {.n_dims = 4, .size = {4, 128, 8, 8}, .stride = {1, 4, ROW, 8 * ROW}},
    {.n_dims = 4, .size = {8, 128, 8, 4}, .stride = {ROW, 4, 8 * ROW, 1}},
    {.n_dims = 4, .size = {128, 8, 4, 8}, .stride = {4, 8 * ROW, 1, ROW}},
    /* a constant, a logarithm */
    {.n_dims = 2, .size = {ROWS, ROW}, .stride = {ROW, 1}, .map = GGUF_MAP_ADD, .constant = -1},
    {.n_dims = 2, .size = {ROW, ROWS}, .stride = {1, ROW}, .map = GGUF_MAP_ADD, .constant = 0.5F},
    {.n_dims = 2, .size = {ROW, ROWS}, .stride = {1, ROW}, .map = GGUF_MAP_LOG_OF_NEGATED},
};

/* The same of two tensors. */
static const struct fs_arrangement of_two[] = {
    /* element by element, also transposed */
    {.n_dims = 2, .size = {ROWS * ROW, 2}, .stride = {1}, .which_dim = 1},
    {.n_dims = 3, .size = {ROW, ROWS, 2}, .stride = {1, ROW}, .which_dim = 2},
    {.n_dims = 3, .size = {ROWS, 2, ROW}, .stride = {ROW, 99, 1}, .which_dim = 1},
    {.n_dims = 2, .size = {2, ROW}, .first = {9 * ROW, 3}, .stride = {0, 1}, .which_dim = 0},
    {.n_dims = 3, .size = {2, ROW, ROWS}, .stride = {0, 1, ROW}, .which_dim = 0},
    {.n_dims = 1, .size = {2}, .first = {5, 6}, .which_dim = 0},
};

/* F32, F16, BF16, Q8_0, Q4_K, I8, IQ4_KS (with row headers) and IQ4_KS_R4 (interleaved). */
static const uint32_t type_ids[] = {0, 1, 30, 8, 12, 24, 144, 344};

static void check_all(bool big_endian)
{
    struct gguf_writer *w = gguf_writer_open(3, big_endian);
    struct gguf_model *model;
    char name[] = "a";

    for (size_t i = 0; i < COUNT(type_ids); i++) {
        name[0] = (char)('a' + i);
        add_tensor(w, name, type_ids[i], ROW, ROWS);
    }
    model = model_file_make(w);
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        for (size_t j = 0; j < COUNT(arrangements); j++) {
            struct fs_arrangement of = arrangements[j];

            of.tensors[0] = &model->tensors[i];
            check(model, &of);
        }
        for (size_t j = 0; j < COUNT(of_two); j++) {
            struct fs_arrangement of = of_two[j];

            of.tensors[0] = &model->tensors[i];
            of.tensors[1] = &model->tensors[(i + 1) % model->n_tensors];
            check(model, &of);
        }
    }
    gguf_close(model);
}

Test(fs_arranged, slices_of_every_kind)
{
    check_all(false);
}

Test(fs_arranged, slices_of_big_endian_tensors)
{
    check_all(true);
}

Test(fs_arranged, arrays_larger_than_a_band)
{
    static const struct {
        uint64_t row, n_rows;
    } shapes[] = {{768, 700}, {2, 70000}, {70000, 2}, {600, 300}};

    for (size_t i = 0; i < COUNT(shapes); i++) {
        const uint64_t row = shapes[i].row, n_rows = shapes[i].n_rows;
        struct gguf_writer *w = gguf_writer_open(3, false);
        struct fs_arrangement of = {.n_dims = 2, .size = {row, n_rows}, .stride = {1, row}};
        struct gguf_model *model;

        add_tensor(w, "a", row % 32 == 0 ? 8 : 1, row, n_rows);
        add_tensor(w, "b", 0, row, n_rows);
        model = model_file_make(w);
        of.tensors[0] = &model->tensors[0];
        check(model, &of);
        of.tensors[1] = &model->tensors[1];
        of.which_dim = of.n_dims++;
        of.size[2] = 2;
        check(model, &of);
        gguf_close(model);
    }
}

/* Two transposed arrays, and their expected bytes. */
struct shared {
    struct fs_image images[2];
    char *expected[2];
    size_t size_bytes;
};

static void *read_slices(void *argument)
{
    static _Atomic uint64_t next_seed = 1;
    const struct shared *shared = argument;
    uint64_t state = next_seed++;
    char *out = malloc(300002);

    cr_assert_not_null(out);
    for (int i = 0; i < 60; i++) {
        const unsigned which = model_file_random(&state) % 2;
        const uint64_t offset = model_file_random(&state) % (shared->size_bytes - 300000);

        check_slice(&shared->images[which], shared->expected[which], offset,
                    model_file_random(&state) % 300000, out);
    }
    free(out);
    return NULL;
}

Test(fs_arranged, threads_share_an_array)
{
    enum { N_THREADS = 6, N_ROWS = 2500, ROW_ELEMENTS = 3072 };
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct shared shared;
    pthread_t threads[N_THREADS];
    struct gguf_model *model;

    add_tensor(w, "a", 8, ROW_ELEMENTS, N_ROWS);
    add_tensor(w, "b", 1, ROW_ELEMENTS, N_ROWS);
    model = model_file_make(w);
    for (size_t i = 0; i < 2; i++) {
        const struct fs_arrangement of = {.tensors = {&model->tensors[i]},
                                          .n_dims = 2,
                                          .size = {ROW_ELEMENTS, N_ROWS},
                                          .stride = {1, ROW_ELEMENTS}};
        float *values[2] = {values_of(model, of.tensors[0]), NULL};

        shared.expected[i] = expected_bytes(&of, values, DEQUANT_BF16, &shared.size_bytes);
        free(values[0]);
        fs_image_begin(&shared.images[i], model);
        cr_assert_eq(
            fs_image_add_arranged(&shared.images[i], &of, dequant_type_by_id(DEQUANT_BF16)), 0);
    }
    for (size_t i = 0; i < N_THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, read_slices, &shared), 0);
    for (size_t i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < 2; i++) {
        fs_image_free(&shared.images[i]);
        free(shared.expected[i]);
    }
    gguf_close(model);
}

Test(fs_arranged, what_is_stored_so_is_served_from_the_file)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    const struct gguf_file *source;
    struct gguf_model *model;
    uint64_t offset;

    add_tensor(w, "a", 0, 8, 4);
    add_tensor(w, "b", 1, 8, 4);
    add_tensor(w, "c", 30, 8, 4);
    model = model_file_make(w);
    for (size_t i = 0; i < 3; i++) {
        const struct gguf_tensor *tensor = &model->tensors[i];
        struct fs_arrangement rows = {
            .tensors = {tensor}, .first = {8}, .n_dims = 2, .size = {2, 8}, .stride = {8, 1}};
        struct fs_image image;

        for (size_t j = 0; j < 3; j++) {
            fs_image_begin(&image, model);
            cr_assert_eq(fs_image_add_arranged(&image, &rows, dequant_type_by_id(formats[j])), 0);
            cr_expect_eq(fs_image_is_of_source(&image, &source, &offset), i == j);
            cr_expect(i != j || offset == tensor->file_offset + (i == 0 ? 32u : 16u));
            fs_image_free(&image);
            fs_image_begin(&image, model);
            cr_assert_eq(fs_image_add_elements(&image, tensor, dequant_type_by_id(formats[j])), 0);
            cr_expect_eq(fs_image_is_of_source(&image, &source, &offset), i == j);
            fs_image_free(&image);
        }
        rows.map = GGUF_MAP_ADD;
        fs_image_begin(&image, model);
        cr_assert_eq(fs_image_add_arranged(&image, &rows, dequant_type_by_id(formats[i])), 0);
        cr_expect_not(fs_image_is_of_source(&image, &source, &offset));
        fs_image_free(&image);
    }
    gguf_close(model);
}

Test(fs_arranged, elements_outside_a_tensor_are_refused)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct gguf_model *model;
    struct fs_image image;

    add_tensor(w, "a", 1, 8, 4);
    model = model_file_make(w);
    fs_image_begin(&image, model);
    {
        const struct {
            struct fs_arrangement of;
            int result;
        } cases[] = {
            {{.n_dims = 2, .size = {4, 8}, .stride = {8, 1}}, 0},
            {{.n_dims = 2, .size = {0, 1ull << 60}, .stride = {8, 1}}, 0},
            {{.n_dims = 2, .size = {5, 8}, .stride = {8, 1}}, -EINVAL},
            {{.n_dims = 2, .size = {4, 8}, .stride = {8, 1}, .first = {1}}, -EINVAL},
            {{.n_dims = 1, .size = {2}, .stride = {UINT64_MAX}, .first = {1}}, -EINVAL},
            {{.n_dims = 1, .size = {3}, .stride = {1ull << 63}}, -EINVAL},
            {{.n_dims = 1, .size = {2}, .stride = {0}}, -EINVAL},
            {{.n_dims = 0, .first = {32}}, -EINVAL},
            {{.n_dims = 2, .size = {1ull << 32, 1ull << 32}, .stride = {1, 1}}, -EOVERFLOW},
            {{.n_dims = FS_MAX_DIMS + 1}, -EINVAL},
        };

        for (size_t i = 0; i < COUNT(cases); i++) {
            struct fs_arrangement of = cases[i].of;

            of.tensors[0] = &model->tensors[0];
            cr_expect_eq(fs_image_add_arranged(&image, &of, dequant_type_by_id(DEQUANT_BF16)),
                         cases[i].result, "%zu", i);
        }
    }
    cr_expect_eq(image.size_bytes, 64u);
    fs_image_free(&image);
    gguf_close(model);
}
