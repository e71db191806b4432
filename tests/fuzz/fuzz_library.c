/*
 * Target: libggufs. The input is a model file. What the library gives in parts must agree with the
 * whole, and what it refuses must have a reason.
 */
#include "fs/library/ggufs.h"
#include "tests/fuzz/fuzz_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_ELEMENTS 512u
#define MOST_THINGS   32u
#define MOST_BYTES    4096u

static void check_key(const struct ggufs_model *model, const struct ggufs_key *key)
{
    const uint64_t n = key->n_elements < MOST_THINGS ? key->n_elements : MOST_THINGS;
    struct ggufs_string strings[MOST_THINGS], one;
    char numbers[8], last[8];

    FUZZ_CHECK(ggufs_key_numbers(model, key, key->n_elements, 1, numbers) < 0, "past the end");
    FUZZ_CHECK(ggufs_key_strings(model, key, key->n_elements, 1, &one) < 0, "past the end");
    if (key->element_type == GGUFS_STRING) {
        FUZZ_CHECK(ggufs_key_strings(model, key, key->n_elements - n, n, strings) == 0, "strings");
        for (uint64_t i = 0; i < n; i++) {
            FUZZ_CHECK(ggufs_key_strings(model, key, key->n_elements - n + i, 1, &one) == 0,
                       "a string");
            FUZZ_CHECK(one.data == strings[i].data && one.length_bytes == strings[i].length_bytes,
                       "a string is another alone");
        }
    } else if (key->element_bytes > 0 && n > 0) {
        FUZZ_CHECK(ggufs_key_numbers(model, key, 0, 1, numbers) == 0, "the first number");
        FUZZ_CHECK(ggufs_key_numbers(model, key, key->n_elements - 1, 1, last) == 0, "the last");
    }
}

static void check_tensor(const struct ggufs_model *model, const struct ggufs_tensor *tensor)
{
    const uint64_t n = tensor->n_elements < MOST_ELEMENTS ? tensor->n_elements : MOST_ELEMENTS;
    const size_t n_bytes =
        tensor->size_bytes < MOST_BYTES ? (size_t)tensor->size_bytes : MOST_BYTES;
    float *whole = fuzz_alloc((size_t)n * sizeof *whole), *part = fuzz_alloc(sizeof *part);
    char *bytes = fuzz_alloc(n_bytes);

    FUZZ_CHECK(ggufs_read(model, tensor, GGUFS_F32, tensor->n_elements, 1, part) == -ERANGE,
               "past the end");
    if (ggufs_read(model, tensor, GGUFS_F32, 0, n, whole) == 0) {
        for (uint64_t i = 0; i < n; i += 1 + n / 8) {
            FUZZ_CHECK(ggufs_read(model, tensor, GGUFS_F32, i, 1, part) == 0, "an element");
            FUZZ_CHECK(memcmp(part, &whole[i], sizeof *part) == 0, "an element is another alone");
        }
    } else {
        FUZZ_CHECK(!tensor->type || !tensor->type->can_decode, "a tensor cannot be read");
    }
    FUZZ_CHECK(ggufs_read_stored(model, tensor, tensor->size_bytes - n_bytes, n_bytes, bytes) == 0,
               "stored bytes");
    FUZZ_CHECK(ggufs_read_stored(model, tensor, tensor->size_bytes, 1, bytes) == -ERANGE,
               "past the end");
    free(bytes);
    free(part);
    free(whole);
}

/* Check a node and some below it. */
static void check_node(struct ggufs_model *model, ggufs_node node, unsigned *left)
{
    struct ggufs_node_info info;
    struct ggufs_file *file;
    char bytes[MOST_BYTES];
    uint64_t size_bytes;
    ggufs_node child;
    int64_t n;

    if (*left == 0)
        return;
    --*left;
    FUZZ_CHECK(ggufs_describe_node(model, node, &info) == 0, "no node");
    FUZZ_CHECK(ggufs_child(model, node, info.n_children, &child) < 0, "past the end");
    for (uint32_t i = 0; i < info.n_children; i++) {
        FUZZ_CHECK(ggufs_child(model, node, i, &child) == 0, "no child");
        check_node(model, child, left);
    }
    if (info.kind != GGUFS_FILE || ggufs_node_size(model, node, &size_bytes) < 0 ||
        size_bytes > MOST_BYTES || ggufs_open_file(model, node, &file) < 0)
        return;
    n = ggufs_pread(file, bytes, sizeof bytes, 0);
    FUZZ_CHECK(n == (int64_t)size_bytes, "%s: %jd bytes of %ju", info.name, (intmax_t)n,
               (uintmax_t)size_bytes);
    ggufs_close_file(file);
}

static void check_model(struct ggufs_model *model)
{
    const struct ggufs_info *info = ggufs_get_info(model);
    unsigned left = 2 * MOST_THINGS;
    ggufs_node root;

    for (uint64_t i = 0; i < info->n_keys && i < MOST_THINGS; i++)
        check_key(model, ggufs_key_at(model, i));
    for (uint64_t i = 0; i < info->n_tensors && i < MOST_THINGS; i++)
        check_tensor(model, ggufs_tensor_at(model, i));
    FUZZ_CHECK(!ggufs_key_at(model, info->n_keys), "a key past the end");
    FUZZ_CHECK(!ggufs_tensor_at(model, info->n_tensors), "a tensor past the end");
    if (ggufs_find_node(model, "", &root) == 0)
        check_node(model, root, &left);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int descriptor = memfd_create("fuzz", MFD_CLOEXEC);
    struct ggufs_model *model;
    struct ggufs_error error;
    char path[64];
    int result;

    FUZZ_CHECK(descriptor >= 0 && write(descriptor, data, size) == (ssize_t)size, "no memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    result = ggufs_open(path, NULL, &model, &error);
    if (result == 0) {
        check_model(model);
        ggufs_close(model);
    } else {
        FUZZ_CHECK(!model && error.code == result && *error.message && error.rule, "no reason");
    }
    close(descriptor);
    return 0;
}
