/*
 * Every tensor of the golden files, compared bit for bit with ggml's conversion of it. The files
 * are not part of the project; without them the tests are skipped.
 */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dequant/kernels.h"

#define MAX_NAME 64

/* A file in memory, as much of a GGUF reader as these two well-formed files need. */
struct reader {
    uint8_t *data;
    size_t n_bytes;
    size_t offset;
    bool big_endian;
};

/* The path of a file in the golden folder; valid until the next call. */
static const char *golden_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("GGUFS_FIXTURES");

    snprintf(path, sizeof(path), "%s/golden/%s", root != NULL ? root : "../shared/fixtures", name);
    return path;
}

/* Reads a whole file; NULL if there is none. The caller frees it. */
static uint8_t *read_whole(const char *name, size_t *n_bytes)
{
    FILE *file = fopen(golden_path(name), "rb");
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

/* Takes a value, which is a string or a number of 4 or 8 bytes; returns the number. */
static uint64_t take_value(struct reader *r)
{
    uint64_t value_type = take(r, 4);
    char text[MAX_NAME];

    if (value_type == 8) {
        take_string(r, text);
        return 0;
    }
    cr_assert((value_type >= 4 && value_type <= 6) || (value_type >= 10 && value_type <= 12),
              "metadata that this reader does not know");
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

/* With every set of kernels that the CPU has, the reference being the first. */
static void compare_tensor(const char *name, const struct dequant_type *type, const uint8_t *blocks,
                           size_t n_elements)
{
    float *out = malloc(n_elements * sizeof(float));
    const struct dequant_kernel_set *set;
    char file_name[MAX_NAME + 4];
    uint8_t *expected;
    size_t n_bytes;

    cr_assert_not_null(out);
    snprintf(file_name, sizeof(file_name), "%.*s.f32", MAX_NAME - 1, name);
    expected = read_whole(file_name, &n_bytes);
    cr_assert_not_null(expected, "no %s", file_name);
    cr_assert_eq(n_bytes, n_elements * sizeof(float), "%s", name);
    for (size_t i = 0; (set = dequant_kernel_set_at(i)) != NULL; i++) {
        if (dequant_choose_kernels(set->name) != 0)
            continue;
        dequant_decode(type, blocks, out, n_elements / type->block_elements);
        compare_values(name, out, expected, n_elements);
    }
    free(expected);
    free(out);
}

/* Compares all tensors of a golden file, of which there must be `n_expected`. */
static void compare_file(const char *file_name, bool big_endian, size_t n_expected)
{
    struct reader r = {.offset = 4, .big_endian = big_endian};
    struct {
        char name[MAX_NAME];
        const struct dequant_type *type;
        size_t n_elements;
        size_t offset;
    } tensors[64];
    size_t n_tensors;
    size_t n_keys;
    size_t alignment = 32;

    r.data = read_whole(file_name, &r.n_bytes);
    if (r.data == NULL) {
        /* Criterion mentions a skipped test only when it is asked to be verbose. */
        fprintf(stderr, "SKIPPED: no %s (GGUFS_FIXTURES names its folder)\n",
                golden_path(file_name));
        cr_skip_test("no %s", golden_path(file_name));
    }

    cr_assert_eq(take(&r, 4), 3, "GGUF version");
    n_tensors = take(&r, 8);
    n_keys = take(&r, 8);
    cr_assert_eq(n_tensors, n_expected);
    for (size_t i = 0; i < n_keys; i++) {
        char key[MAX_NAME];
        uint64_t value;

        take_string(&r, key);
        value = take_value(&r);
        if (strcmp(key, "general.alignment") == 0)
            alignment = value;
    }
    for (size_t i = 0; i < n_tensors; i++) {
        size_t n_dims;

        take_string(&r, tensors[i].name);
        n_dims = take(&r, 4);
        tensors[i].n_elements = 1;
        for (size_t dim = 0; dim < n_dims; dim++)
            tensors[i].n_elements *= take(&r, 8);
        tensors[i].type = dequant_type_by_id((uint32_t)take(&r, 4));
        cr_assert_not_null(tensors[i].type, "%s", tensors[i].name);
        tensors[i].offset = take(&r, 8);
    }
    r.offset = (r.offset + alignment - 1) / alignment * alignment;

    for (size_t i = 0; i < n_tensors; i++) {
        const struct dequant_type *type = tensors[i].type;
        size_t n_blocks = tensors[i].n_elements / type->block_elements;
        size_t n_bytes = n_blocks * type->block_bytes;
        uint8_t *blocks = malloc(n_bytes);

        cr_assert_not_null(blocks);
        cr_assert_leq(r.offset + tensors[i].offset + n_bytes, r.n_bytes, "%s", tensors[i].name);
        if (big_endian)
            dequant_swap_blocks(type, r.data + r.offset + tensors[i].offset, blocks, n_blocks);
        else
            memcpy(blocks, r.data + r.offset + tensors[i].offset, n_bytes);
        compare_tensor(tensors[i].name, type, blocks, tensors[i].n_elements);
        free(blocks);
    }
    free(r.data);
}

Test(dequant_golden, all_types)
{
    compare_file("all-types.gguf", false, 35);
}

Test(dequant_golden, big_endian)
{
    compare_file("big-endian.gguf", true, 26);
}
