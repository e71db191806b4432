/* The public interface: tensors and types. */
#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dequant/kernels.h"
#include "fs/library/ggufs.h"
#include "tests/unit/dequant/random_blocks.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(library_tensors);

static struct ggufs_model *open_descriptor(int descriptor, const char *options)
{
    struct ggufs_model *model;
    struct ggufs_error error;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_assert_eq(ggufs_open(path, options, &model, &error), 0, "%s", error.message);
    return model;
}

static struct ggufs_model *open_rich(size_t encoding)
{
    struct model_bytes bytes = model_file_rich(&model_encodings[encoding]);
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    struct ggufs_model *model = open_descriptor(descriptor, NULL);

    close(descriptor);
    free(bytes.data);
    return model;
}

Test(library_tensors, descriptions)
{
    struct ggufs_model *model = open_rich(2);
    const struct ggufs_tensor *tensor = ggufs_find_tensor(model, "a/b");

    cr_assert_not_null(tensor);
    cr_expect_eq(tensor, ggufs_tensor_at(model, 3));
    cr_expect_str_eq(tensor->type->name, "F16");
    cr_expect_eq(tensor->type_id, 1u);
    cr_expect_eq(tensor->n_dims, 4u);
    cr_expect_arr_eq(tensor->shape, ((uint64_t[]){2, 1, 3, 2, 1, 1, 1, 1}), sizeof tensor->shape);
    cr_expect_eq(tensor->n_elements, 12u);
    cr_expect_eq(tensor->size_bytes, 24u);
    cr_expect_eq(tensor->file_index, 0u);
    cr_expect_eq(tensor->file_offset % 32, 0u);
    cr_expect_not(tensor->is_big_endian);
    tensor = ggufs_find_tensor(model, "unknown");
    cr_expect_null(tensor->type);
    cr_expect_eq(tensor->type_id, 999u);
    cr_expect_geq(tensor->size_bytes, 5u);
    cr_expect_eq(ggufs_find_tensor(model, "scalar")->n_dims, 0u);
    cr_expect_null(ggufs_find_tensor(model, "a"));
    cr_expect_null(ggufs_tensor_at(model, 9));
    ggufs_close(model);
}

/* Any range of a tensor is that range of the whole, in files of both byte orders. */
Test(library_tensors, ranges)
{
    static const enum ggufs_format formats[] = {GGUFS_F32, GGUFS_F16, GGUFS_BF16};
    static const size_t widths[] = {4, 2, 2};

    for (size_t encoding = 0; encoding < MODEL_N_ENCODINGS; encoding++) {
        struct ggufs_model *model = open_rich(encoding);

        for (uint64_t i = 0; i < ggufs_get_info(model)->n_tensors; i++) {
            const struct ggufs_tensor *tensor = ggufs_tensor_at(model, i);
            char whole[2048], part[2049];

            for (size_t f = 0; f < COUNT(formats); f++) {
                const int result =
                    ggufs_read(model, tensor, formats[f], 0, tensor->n_elements, whole);
                const size_t w = widths[f];

                if (!tensor->type || !tensor->type->can_decode) {
                    cr_expect_eq(result, -ENOTSUP);
                    continue;
                }
                cr_assert_eq(result, 0);
                for (uint64_t first = 0; first <= tensor->n_elements; first += 7) {
                    const uint64_t n = (tensor->n_elements - first) / 2;

                    cr_assert_eq(ggufs_read(model, tensor, formats[f], first, n, part + 1), 0);
                    cr_expect_arr_eq(part + 1, whole + first * w, n * w);
                }
                cr_expect_eq(ggufs_read(model, tensor, formats[f], 1, tensor->n_elements, part),
                             -ERANGE);
                cr_expect_eq(ggufs_read(model, tensor, formats[f], UINT64_MAX, 2, part), -ERANGE);
            }
            cr_expect_eq(ggufs_read_stored(model, tensor, 0, (size_t)tensor->size_bytes, whole), 0);
            cr_expect_eq(ggufs_read_stored(model, tensor, 1, (size_t)tensor->size_bytes, whole),
                         -ERANGE);
            cr_expect_eq(ggufs_read_stored(model, tensor, tensor->size_bytes, 0, NULL), 0);
        }
        ggufs_close(model);
    }
}

/* Numbers that a float cannot hold, in both byte orders. */
Test(library_tensors, stored_numbers_are_exact)
{
    static const int64_t numbers[] = {INT64_MAX, INT64_MIN, 1, -1, (1LL << 53) + 1, 0};

    for (size_t encoding = 0; encoding < MODEL_N_ENCODINGS; encoding++) {
        const bool big_endian = model_encodings[encoding].big_endian;
        struct gguf_writer *w = gguf_writer_open(model_encodings[encoding].version, big_endian);
        int64_t stored[COUNT(numbers)], out[COUNT(numbers)], raw[COUNT(numbers)];
        const struct ggufs_tensor *tensor;
        struct ggufs_model *model;
        struct model_bytes bytes;
        char blocks[34];
        int descriptor;

        for (size_t i = 0; i < COUNT(numbers); i++)
            stored[i] = big_endian ? (int64_t)__builtin_bswap64((uint64_t)numbers[i]) : numbers[i];
        gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){COUNT(numbers)}, 27, stored,
                               sizeof stored);
        gguf_writer_add_tensor(w, "q", 1, 1, (uint64_t[]){64}, 8, NULL, 68);
        bytes = model_file_finish(w);
        descriptor = model_file_create(bytes.data, bytes.size_bytes);
        model = open_descriptor(descriptor, NULL);
        tensor = ggufs_find_tensor(model, "t");
        cr_expect_eq(ggufs_read(model, tensor, GGUFS_STORED, 0, COUNT(numbers), out), 0);
        cr_expect_arr_eq(out, numbers, sizeof numbers);
        cr_expect_eq(ggufs_read(model, tensor, GGUFS_STORED, 4, 1, out), 0);
        cr_expect_eq(out[0], numbers[4]);
        cr_expect_eq(ggufs_read_stored(model, tensor, 0, sizeof raw, raw), 0);
        cr_expect_arr_eq(raw, stored, sizeof stored);
        tensor = ggufs_find_tensor(model, "q");
        cr_expect_eq(ggufs_read(model, tensor, GGUFS_STORED, 32, 32, blocks), 0);
        cr_expect_eq(ggufs_read(model, tensor, GGUFS_STORED, 1, 32, blocks), -EINVAL);
        cr_expect_eq(ggufs_read(model, tensor, GGUFS_STORED, 0, 31, blocks), -EINVAL);
        cr_expect_eq(ggufs_read(model, tensor, (enum ggufs_format)9, 0, 32, blocks), -EINVAL);
        ggufs_close(model);
        close(descriptor);
        free(bytes.data);
    }
}

/* Every type, read from a file and decoded in memory, against the decoder of the type table. */
Test(library_tensors, all_types)
{
    const struct ggufs_type *type;

    cr_assert_eq(dequant_choose_kernels("scalar"), 0);
    for (uint32_t i = 0; (type = ggufs_type_at(i)); i++) {
        const struct dequant_type *row = dequant_type_at(i);
        enum { WIDTH = 512 };
        const uint64_t n_rows = 2 * row->interleave_rows;
        uint64_t n_bytes, other;
        unsigned char *stored;
        float *expected, *out;
        uint64_t state = i;

        cr_expect_str_eq(type->name, row->name);
        cr_expect_eq(type->block_elements, row->block_elements);
        if (!type->can_decode) {
            cr_expect_eq(ggufs_decode(type, NULL, WIDTH, n_rows, NULL), -ENOTSUP, "%s", type->name);
            continue;
        }
        cr_assert_eq(ggufs_rows_bytes(type, WIDTH, n_rows, &n_bytes), 0, "%s", type->name);
        cr_expect(type->block_elements == 1 ||
                  ggufs_rows_bytes(type, WIDTH + 1, n_rows, &other) == -EINVAL);
        cr_expect(ggufs_rows_bytes(type, WIDTH, UINT64_MAX / 1024 * 512, &other) == -EOVERFLOW);
        stored = malloc(n_bytes);
        expected = malloc(WIDTH * n_rows * sizeof *expected);
        out = malloc(WIDTH * n_rows * sizeof *out);
        for (uint64_t j = 0; j < n_bytes; j++)
            stored[j] = (unsigned char)(model_file_random(&state) >> 32 & 0x3f);
        dequant_decode_elements(row, (struct dequant_shape){WIDTH, WIDTH * n_rows}, stored, 0,
                                WIDTH * n_rows, expected);
        cr_expect_eq(ggufs_decode(type, stored, WIDTH, n_rows, out), 0);
        cr_expect_arr_eq(out, expected, WIDTH * n_rows * sizeof *out, "%s", type->name);
        free(stored);
        free(expected);
        free(out);
    }
    cr_expect_gt(ggufs_find_type("q4_k")->block_elements, 1u);
    cr_expect_eq(ggufs_find_type("Q4_0")->block_bytes, 18u); /* not the layout of an old era */
    cr_expect_null(ggufs_find_type("Q4"));
}

Test(library_tensors, encoding)
{
    static const char *const names[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0"};
    static const float most[] = {0, 1e-3f, 1e-2f, 1e-2f, 0.15f};
    const struct ggufs_type *type;
    float values[64], out[64];
    unsigned char stored[256 + 1];
    unsigned n = 0;

    for (int i = 0; i < 64; i++)
        values[i] = sinf((float)i);
    for (uint32_t i = 0; (type = ggufs_type_at(i)) && type->is_in_ggml; i++)
        n += type->can_encode;
    cr_expect_eq(n, COUNT(names));
    for (size_t i = 0; i < COUNT(names); i++) {
        type = ggufs_find_type(names[i]);
        cr_assert_eq(ggufs_encode(type, values, 32, 2, stored + 1), 0, "%s", names[i]);
        cr_assert_eq(ggufs_decode(type, stored + 1, 32, 2, out), 0);
        for (int j = 0; j < 64; j++)
            cr_expect_leq(fabsf(out[j] - values[j]), most[i], "%s %d", names[i], j);
        cr_expect_eq(ggufs_encode(type, NULL, 32, 0, NULL), 0);
    }
    cr_expect_eq(ggufs_encode(ggufs_find_type("Q4_0"), values, 31, 1, stored), -EINVAL);
    cr_expect_eq(ggufs_encode(ggufs_find_type("Q4_K"), values, 256, 0, stored), -ENOTSUP);
}

/* ---- files that change ---- */

static int make_floats(size_t n)
{
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct model_bytes bytes;
    float *values = malloc(n * sizeof *values);
    int descriptor;

    for (size_t i = 0; i < n; i++)
        values[i] = (float)i;
    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){n}, 0, values, n * sizeof *values);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    free(bytes.data);
    free(values);
    return descriptor;
}

static void expect_loss(const char *options)
{
    enum { N = 100000 };
    const int descriptor = make_floats(N);
    struct ggufs_model *model = open_descriptor(descriptor, options);
    const struct ggufs_tensor *tensor = ggufs_find_tensor(model, "t");
    float *out = malloc(N * sizeof *out);
    char bytes[4] = "";

    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, N, out), 0);
    cr_assert_eq(ftruncate(descriptor, 4096), 0);
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, N, out), -EIO);
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F16, N - 1, 1, out), -EIO);
    cr_expect_eq(ggufs_read_stored(model, tensor, tensor->size_bytes - 4, 4, out), -EIO);
    cr_expect_eq(ggufs_recheck(model), -EIO);
    cr_expect_eq(pwrite(descriptor, bytes, 4, 8 << 20), 4); /* longer than before */
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, 1, out), -ESTALE);
    cr_expect_eq(ggufs_recheck(model), -ESTALE);
    ggufs_close(model);
    close(descriptor);
    free(out);
}

Test(library_tensors, a_file_that_shrinks_is_an_error)
{
    expect_loss(NULL);
    cr_assert_eq(ggufs_catch_faults(), 0);
    cr_assert_eq(ggufs_catch_faults(), 0);
    expect_loss("mapped");
}

Test(library_tensors, data_that_have_not_arrived)
{
    const int descriptor = make_floats(1000);
    struct ggufs_model *model;
    const struct ggufs_tensor *tensor;
    const off_t whole = lseek(descriptor, 0, SEEK_END);
    float out[1000];

    cr_assert_eq(ftruncate(descriptor, whole - 4), 0);
    model = open_descriptor(descriptor, "partial");
    tensor = ggufs_find_tensor(model, "t");
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, 999, out), 0);
    cr_expect_eq(out[998], 998.0f);
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, 1000, out), -EAGAIN);
    cr_expect_eq(ggufs_read_stored(model, tensor, 0, 4000, out), -EAGAIN);
    cr_assert_eq(pwrite(descriptor, "\0\0\0", 4, whole - 4), 4);
    cr_expect_eq(ggufs_read(model, tensor, GGUFS_F32, 0, 1000, out), 0);
    ggufs_close(model);
    close(descriptor);
}
