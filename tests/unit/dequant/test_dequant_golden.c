/*
 * Compares every tensor of the golden files bit for bit with the values that ggml or ik_llama.cpp
 * computed. The files are not part of the project; without them the tests are skipped.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/kernels.h"
#include "dequant/rows.h"

#define MAX_NAME 64

/* A file in memory, for a minimal GGUF reader. */
struct reader {
    uint8_t *data;
    size_t n_bytes;
    size_t offset;
    bool big_endian;
};

/* Return the path of a fixture, valid until the next call. */
static const char *fixture_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("GGUFS_FIXTURES");

    snprintf(path, sizeof(path), "%s/%s", root != NULL ? root : "../shared/fixtures", name);
    return path;
}

/* Read a whole file. Returns NULL if it does not exist. The caller frees the bytes. */
static uint8_t *read_whole(const char *name, size_t *n_bytes)
{
    FILE *file = fopen(fixture_path(name), "rb");
    uint8_t *data;
    long end;

    if (file == NULL)
        return NULL;
    cr_assert_eq(fseek(file, 0, SEEK_END), 0);
    end = ftell(file);
    cr_assert_gt(end, 0, "%s", name);
    rewind(file);
    *n_bytes = (size_t)end;
    data = malloc(*n_bytes);
    cr_assert_not_null(data);
    cr_assert_eq(fread(data, 1, *n_bytes, file), *n_bytes, "%s", name);
    fclose(file);
    return data;
}

static uint64_t take(struct reader *r, size_t width_bytes)
{
    uint64_t value = 0;

    cr_assert_leq(r->offset + width_bytes, r->n_bytes, "the file ends early");
    for (size_t i = 0; i < width_bytes; i++) {
        size_t place = r->big_endian ? width_bytes - 1 - i : i;

        value |= (uint64_t)r->data[r->offset + i] << (8 * place);
    }
    r->offset += width_bytes;
    return value;
}

static void take_string(struct reader *r, char text[MAX_NAME])
{
    size_t length = take(r, 8);

    cr_assert_lt(length, MAX_NAME);
    cr_assert_leq(r->offset + length, r->n_bytes, "the file ends early");
    memcpy(text, r->data + r->offset, length);
    text[length] = '\0';
    r->offset += length;
}

/* Read a value: a string or a number of 4 or 8 bytes. Returns the number. */
static uint64_t take_value(struct reader *r)
{
    uint64_t value_type = take(r, 4);
    char text[MAX_NAME];

    if (value_type == 8) {
        take_string(r, text);
        return 0;
    }
    cr_assert((value_type >= 4 && value_type <= 6) || (value_type >= 10 && value_type <= 12),
              "this reader does not support the value's type");
    return take(r, value_type <= 6 ? 4 : 8);
}

static void compare_values(const char *name, const float *got, const uint8_t *expected,
                           size_t n_elements)
{
    for (size_t i = 0; i < n_elements; i++) {
        uint32_t got_bits;
        uint32_t expected_bits;

        memcpy(&got_bits, &got[i], 4);
        memcpy(&expected_bits, expected + 4 * i, 4);
        cr_assert_eq(got_bits, expected_bits, "%s, element %zu, kernels %s: bits %#x, not %#x",
                     name, i, dequant_chosen_kernels()->name, got_bits, expected_bits);
    }
}

struct tensor {
    char name[MAX_NAME];
    const struct dequant_type *type; /* NULL if the type is unknown */
    size_t row_elements, n_elements;
    size_t offset;
};

static struct dequant_shape shape_of(const struct tensor *tensor)
{
    return (struct dequant_shape){tensor->row_elements, tensor->n_elements};
}

/* Compare runs of blocks that may begin and end within rows. */
static void compare_slices(const struct tensor *tensor, const uint8_t *data, float *out,
                           const uint8_t *expected)
{
    const size_t block_elements = tensor->type->block_elements;
    const size_t n_blocks = tensor->n_elements / block_elements;

    for (size_t i = 0; i < 200; i++) {
        const size_t first = i * 2654435761u % n_blocks;
        const size_t n = (i * 40503u % (n_blocks - first) + 1) * block_elements;

        dequant_decode_elements(tensor->type, shape_of(tensor), data, first * block_elements, n,
                                out);
        compare_values(tensor->name, out, expected + first * block_elements * sizeof(float), n);
    }
}

/* Compare a tensor with every kernel set that the CPU supports. The reference is the first. */
static void compare_tensor(const char *folder, const struct tensor *tensor, const uint8_t *data)
{
    const size_t n_elements = tensor->n_elements;
    float *out = malloc(n_elements * sizeof(float));
    const struct dequant_kernel_set *set;
    char file_name[2 * MAX_NAME];
    uint8_t *expected;
    size_t n_bytes;

    cr_assert_not_null(out);
    snprintf(file_name, sizeof(file_name), "%s/%.*s.f32", folder, MAX_NAME - 1, tensor->name);
    expected = read_whole(file_name, &n_bytes);
    cr_assert_not_null(expected, "no %s", file_name);
    cr_assert_eq(n_bytes, n_elements * sizeof(float), "%s", tensor->name);
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (dequant_choose_kernels(set->name) != 0)
            continue;
        dequant_decode_elements(tensor->type, shape_of(tensor), data, 0, n_elements, out);
        compare_values(tensor->name, out, expected, n_elements);
        compare_slices(tensor, data, out, expected);
    }
    free(expected);
    free(out);
}

static void take_tensor(struct reader *r, struct tensor *tensor)
{
    size_t n_dims;

    take_string(r, tensor->name);
    n_dims = take(r, 4);
    tensor->row_elements = tensor->n_elements = take(r, 8);
    for (size_t dim = 1; dim < n_dims; dim++)
        tensor->n_elements *= take(r, 8);
    tensor->type = dequant_type_by_id((uint32_t)take(r, 4));
    tensor->offset = take(r, 8);
}

#define MAX_TYPES 500

/* Return the position of the type in the type table. */
static size_t index_of(const struct dequant_type *type)
{
    size_t i = 0;

    cr_assert_leq(dequant_type_count(), (size_t)MAX_TYPES);
    while (dequant_type_at(i) != type)
        i++;
    return i;
}

/* Compare all decodable tensors of a file, and mark the rows of the type table that they use. */
static void compare_file(const char *folder, const char *file_name, bool big_endian,
                         bool is_compared[MAX_TYPES])
{
    struct reader r = {.offset = 4, .big_endian = big_endian};
    struct tensor tensors[64];
    size_t n_tensors, n_keys;
    size_t alignment = 32;
    char path[2 * MAX_NAME];

    snprintf(path, sizeof(path), "%s/%s", folder, file_name);
    r.data = read_whole(path, &r.n_bytes);
    if (r.data == NULL) {
        /* Criterion reports a skipped test only in verbose mode. */
        fprintf(stderr, "SKIPPED: no %s (set GGUFS_FIXTURES to the fixtures folder)\n",
                fixture_path(path));
        cr_skip_test("no %s", fixture_path(path));
    }

    cr_assert_eq(take(&r, 4), 3, "GGUF version");
    n_tensors = take(&r, 8);
    n_keys = take(&r, 8);
    cr_assert_leq(n_tensors, sizeof tensors / sizeof *tensors);
    for (size_t i = 0; i < n_keys; i++) {
        char key[MAX_NAME];
        uint64_t value;

        take_string(&r, key);
        value = take_value(&r);
        if (strcmp(key, "general.alignment") == 0)
            alignment = value;
    }
    for (size_t i = 0; i < n_tensors; i++)
        take_tensor(&r, &tensors[i]);
    r.offset = (r.offset + alignment - 1) / alignment * alignment;

    for (size_t i = 0; i < n_tensors; i++) {
        const struct tensor *tensor = &tensors[i];
        uint64_t n_bytes;
        uint8_t *data;

        if (tensor->type == NULL || !dequant_is_decodable(tensor->type))
            continue;
        cr_assert_eq(dequant_rows_bytes(tensor->type, tensor->row_elements,
                                        tensor->n_elements / tensor->row_elements, &n_bytes),
                     0, "%s", tensor->name);
        cr_assert_leq(r.offset + tensor->offset + n_bytes, r.n_bytes, "%s", tensor->name);
        data = malloc(n_bytes);
        cr_assert_not_null(data);
        if (big_endian)
            dequant_swap_blocks(tensor->type, r.data + r.offset + tensor->offset, data,
                                tensor->n_elements / tensor->type->block_elements);
        else
            memcpy(data, r.data + r.offset + tensor->offset, n_bytes);
        compare_tensor(folder, tensor, data);
        free(data);
        is_compared[index_of(tensor->type)] = true;
    }
    free(r.data);
}

/*
 * all-types.gguf has the types of ggml, ik-types.gguf those that only ik_llama.cpp has. There is no
 * file with PrismML's.
 */
Test(dequant_golden, every_type)
{
    bool is_compared[MAX_TYPES] = {false};

    compare_file("golden", "all-types.gguf", false, is_compared);
    compare_file("ik", "ik-types.gguf", false, is_compared);
    for (size_t i = 0; i < dequant_type_count(); i++) {
        const struct dequant_type *type = dequant_type_at(i);

        cr_expect(is_compared[i] || !dequant_is_decodable(type) ||
                      strcmp(type->program, "PrismML") == 0,
                  "no fixture has a tensor of %s", type->name);
    }
}

Test(dequant_golden, big_endian)
{
    bool is_compared[MAX_TYPES] = {false};
    size_t n_types = 0;

    compare_file("golden", "big-endian.gguf", true, is_compared);
    for (size_t i = 0; i < MAX_TYPES; i++)
        n_types += is_compared[i];
    cr_expect_eq(n_types, 26u);
}
