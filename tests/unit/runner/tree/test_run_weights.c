/* The tensors of a tree, as the runner maps them: valid and invalid files. */
#include "contrib/runner/tree/tree_files.h"
#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/runner/run_numbers.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct run_files files;

static void begin(void)
{
    run_files_make(&files);
    run_files_metadata(&files, "{}");
}

static void end(void)
{
    run_files_remove(&files);
}

TestSuite(run_weights, .init = begin, .fini = end);

/* Return the path of a file of the tree, valid until the next call. */
static const char *at(const char *name)
{
    static char path[300];

    snprintf(path, sizeof path, "%s/%s", files.path, name);
    return path;
}

static void expect_failure(const char *name, int code, const char *pattern)
{
    struct run_tree tree = run_files_open(&files);
    struct run_failure failure = {0};
    struct run_tensor tensor;

    cr_expect_eq(run_weights_get(tree.weights, name, &tensor, &failure), code, "%s", failure.text);
    cr_expect_not_null(strstr(failure.text, pattern), "\"%s\" does not contain \"%s\"",
                       failure.text, pattern);
    cr_expect_eq(run_weights_mapped_bytes(tree.weights), 0u);
    run_tree_close(&tree);
}

/* Write a tensor of 16 bytes with this info, and expect a failure. */
static void expect_info(const char *info, int code, const char *pattern)
{
    run_files_write(&files, "tensors/t/raw", "0123456789abcdef", 16);
    run_files_write_text(&files, "tensors/t/info", info);
    expect_failure("t", code, pattern);
}

Test(run_weights, tensors_are_mapped_once)
{
    const float *a = run_files_random(&files, "a", 4, 3, 2, 1);
    const float *b = run_files_random(&files, "b", 5, 0, 0, 1);
    struct run_tree tree = run_files_open(&files);
    struct run_failure failure;
    struct run_tensor tensor, again;
    const struct run_tensor *mapped;

    cr_expect(run_weights_has(tree.weights, "a"));
    cr_expect_not(run_weights_has(tree.weights, "c"));
    cr_expect_not(run_weights_has(tree.weights, ""));
    cr_expect_null(run_weights_mapping(tree.weights, 0));
    cr_assert_eq(run_weights_get(tree.weights, "b", &tensor, &failure), 0);
    cr_assert_eq(run_weights_get(tree.weights, "a", &tensor, &failure), 0);
    cr_assert_eq(run_weights_get(tree.weights, "a", &again, &failure), 0);
    cr_expect_eq(tensor.data, again.data);
    cr_expect_str_eq(tensor.name, "a");
    cr_expect(tensor.ne[0] == 4 && tensor.ne[1] == 3 && tensor.ne[2] == 2 && tensor.ne[3] == 1);
    cr_expect_eq(memcmp(tensor.data, a, 96), 0);
    cr_expect_eq(run_weights_mapped_bytes(tree.weights), 116u);
    mapped = run_weights_mapping(tree.weights, 0);
    cr_expect(run_tensor_bytes(mapped) == 20 && memcmp(mapped->data, b, 20) == 0);
    mapped = run_weights_mapping(tree.weights, 1);
    cr_expect(run_tensor_bytes(mapped) == 96 && mapped->data == tensor.data);
    cr_expect_null(run_weights_mapping(tree.weights, 2));
    cr_expect_str_eq(run_weights_name_at(tree.weights, tensor.data), "a");
    cr_expect_str_eq(run_weights_name_at(tree.weights, tensor.data + 95), "a");
    cr_expect_null(run_weights_name_at(tree.weights, tensor.data + 96));
    cr_expect_null(run_weights_name_at(tree.weights, NULL));
    run_tree_close(&tree);
}

Test(run_weights, missing_files_are_named)
{
    struct run_failure failure;
    struct run_tree tree;

    expect_failure("t", -ENOENT, "tensors/t: missing");
    run_files_write_text(&files, "tensors/t/info", "{\"ggml_type\": 0, \"ne\": [4]}");
    expect_failure("t", -ENOENT, "tensors/t/raw: missing, but tensors.json lists the tensor");
    cr_assert_eq(remove(at("tensors.json")), 0);
    cr_expect_eq(run_tree_open(files.path, &tree, &failure), -ENOENT);
    cr_expect_str_eq(failure.text, "tensors.json: No such file or directory");
    cr_expect_eq(run_tree_open(at("none"), &tree, &failure), -ENOENT);
    run_files_write_text(&files, "file", "");
    cr_expect_eq(run_tree_open(at("file"), &tree, &failure), -ENOTDIR);
}

Test(run_weights, a_tree_may_have_no_tensors)
{
    struct run_tree tree = run_files_open(&files);

    cr_expect_not(run_weights_has(tree.weights, "t"));
    run_tree_close(&tree);
    expect_failure("t", -ENOENT, "tensors/t: missing");
}

Test(run_weights, size_of_raw_must_match_info)
{
    expect_info("{\"ggml_type\": 0, \"ne\": [5]}", -EINVAL,
                "tensors/t/raw: 16 bytes, tensors.json says 20");
    expect_info("{\"ggml_type\": 0, \"ne\": [3]}", -EINVAL,
                "tensors/t/raw: 16 bytes, tensors.json says 12");
    expect_info("{\"ggml_type\": 1, \"ne\": [4]}", -EINVAL, "16 bytes, tensors.json says 8");
    expect_info("{\"ggml_type\": 0, \"ne\": [2147483647, 1]}", -EINVAL, "16 bytes");
    run_files_write(&files, "tensors/t/raw", "", 0);
    run_files_write_text(&files, "tensors/t/info", "{\"ggml_type\": 0, \"ne\": [1]}");
    expect_failure("t", -EINVAL, "tensors/t/raw: 0 bytes");
}

Test(run_weights, unknown_types_are_refused)
{
    static const char *const bad[] = {"4", "5", "37", "38", "43", "1000", "4294967295"};
    char info[100];

    for (size_t i = 0; i < COUNT(bad); i++) {
        snprintf(info, sizeof info, "{\"ggml_type\": %s, \"ne\": [4]}", bad[i]);
        expect_info(info, -ENOTSUP, "tensors.json: t: type ");
    }
    expect_info("{\"ne\": [4]}", -EINVAL, "tensors.json: t: no ggml_type");
    expect_info("{\"ggml_type\": \"F32\", \"ne\": [4]}", -EINVAL, "no ggml_type");
    expect_info("{\"ggml_type\": -1, \"ne\": [4]}", -EINVAL, "no ggml_type");
    expect_info("{\"ggml_type\": 0.5, \"ne\": [4]}", -EINVAL, "no ggml_type");
    expect_info("{\"ggml_type\": 1e20, \"ne\": [4]}", -EINVAL, "no ggml_type");
    expect_info("{\"ggml_type\": 2, \"ne\": [16]}", -EINVAL,
                "row length 16 is not a multiple of the Q4_0 block size, 32");
    expect_info("{\"ggml_type\": 344, \"ne\": [256, 6]}", -EINVAL,
                "6 rows are not a multiple of the 4 that IQ4_KS_R4 stores together");
    expect_info("{\"ggml_type\": 344, \"ne\": [256, 4]}", -EINVAL,
                "16 bytes, tensors.json says 560");
}

Test(run_weights, era_selects_old_layouts)
{
    struct run_failure failure;
    struct run_tensor tensor;
    struct run_tree tree;
    uint8_t block[24] = {0};

    run_files_write(&files, "tensors/t/raw", block, 20);
    run_files_write_text(&files, "tensors/t/info", "{\"ggml_type\": 2, \"era\": 0, \"ne\": [32]}");
    run_files_write(&files, "tensors/u/raw", block, 20);
    run_files_write_text(&files, "tensors/u/info", "{\"ggml_type\": 2, \"ne\": [32]}");
    tree = run_files_open(&files);
    cr_assert_eq(run_weights_get(tree.weights, "t", &tensor, &failure), 0, "%s", failure.text);
    cr_expect_eq(tensor.type->era, 0u);
    cr_expect_eq(run_weights_get(tree.weights, "u", &tensor, &failure), -EINVAL);
    run_tree_close(&tree);
}

Test(run_weights, big_endian_tensors_are_refused)
{
    expect_info("{\"ggml_type\": 0, \"byte_order\": \"big\", \"ne\": [4]}", -ENOTSUP,
                "tensors.json: t: the tensor is big-endian");
}

Test(run_weights, shapes)
{
    expect_info("{\"ggml_type\": 0}", -EINVAL, "tensors.json: t: no ne");
    expect_info("{\"ggml_type\": 0, \"ne\": 4}", -EINVAL, "no ne");
    expect_info("{\"ggml_type\": 0, \"ne\": [4,1,1,1,1]}", -EINVAL, "at most 4 dimensions");
    expect_info("{\"ggml_type\": 0, \"ne\": [0]}", -EINVAL, "ne[0] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [4, 0]}", -EINVAL, "ne[1] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [4, -1]}", -EINVAL, "ne[1] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [4, null]}", -EINVAL, "ne[1] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [4.5]}", -EINVAL, "ne[0] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [2147483648]}", -EINVAL, "ne[0] is not from 1");
    expect_info("{\"ggml_type\": 0, \"ne\": [2147483647, 2147483647, 2147483647, 4]}", -EINVAL,
                "the shape is too large");
    /* 4 · 2^62 bytes wrap to 0. */
    expect_info("{\"ggml_type\": 0, \"ne\": [1, 1073741824, 1073741824, 4]}", -EINVAL,
                "the shape is too large");
    expect_info("{\"ggml_type\": 0, \"ne\": [1, 1073741824, 1073741824, 1]}", -EINVAL,
                "16 bytes, tensors.json says");
}

Test(run_weights, special_files_are_refused)
{
    run_files_write_text(&files, "tensors/t/info", "{\"ggml_type\": 0, \"ne\": [4]}");
    cr_assert_eq(mkdir(at("tensors/t/raw"), 0755), 0);
    expect_failure("t", -EINVAL, "tensors/t/raw: ");
    cr_assert_eq(rmdir(at("tensors/t/raw")), 0);
    cr_assert_eq(mkfifo(at("tensors/t/raw"), 0644),
                 0); /* the FIFO has no writer, so open() must not wait for one */
    expect_failure("t", -EINVAL, "tensors/t/raw: ");
    cr_assert_eq(unlink(at("tensors/t/raw")), 0);
    cr_assert_eq(symlink("/dev/zero", at("tensors/t/raw")), 0);
    expect_failure("t", -EXDEV, "tensors/t/raw: a symbolic link leads out of the tree");
}

Test(run_weights, links_stay_in_the_tree)
{
    const int tree = open(at("tensors"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd;

    cr_assert(mkdir(at("tensors/t"), 0755) == 0 || errno == EEXIST);
    cr_assert_eq(symlink("t", at("tensors/inside")), 0);
    cr_assert_eq(symlink("/dev/zero", at("tensors/outside")), 0);
    cr_assert_eq(mkdir(at("tensors2"), 0755), 0);
    cr_assert_eq(symlink("../tensors2", at("tensors/beside")), 0);
    fd = run_open_below(tree, "inside", O_RDONLY);
    cr_expect_geq(fd, 0);
    close(fd);
    cr_expect_eq(run_open_below(tree, "outside", O_RDONLY), -EXDEV);
    cr_expect_eq(run_open_below(tree, "beside", O_RDONLY), -EXDEV);
    cr_expect_eq(run_open_below(tree, "..", O_RDONLY), -EXDEV);
    cr_expect_eq(run_open_below(tree, "nothing", O_RDONLY), -ENOENT);
    close(tree);
}

/* The tree has links for tensors with another name in GGUF. */
Test(run_weights, links_to_tensors_are_followed)
{
    const float *values = run_files_random(&files, "real", 4, 0, 0, 1);
    struct run_failure failure;
    struct run_tensor tensor;
    struct run_tree tree;

    cr_assert_eq(symlink("real", at("tensors/link")), 0);
    tree = run_files_open(&files);
    cr_assert_eq(run_weights_get(tree.weights, "link", &tensor, &failure), 0, "%s", failure.text);
    cr_expect_str_eq(tensor.name, "link");
    cr_expect_eq(memcmp(tensor.data, values, 16), 0);
    run_tree_close(&tree);
}

Test(run_weights, many_names)
{
    struct run_tree tree;
    char name[40];

    for (size_t i = 0; i < 700; i++) {
        snprintf(name, sizeof name, "tensors/t%zu/info", i * 7919 % 700);
        run_files_write_text(&files, name, "{\"ne\": [1]}");
    }
    tree = run_files_open(&files);
    for (size_t i = 0; i < 710; i++) {
        snprintf(name, sizeof name, "t%zu", i);
        cr_expect_eq(run_weights_has(tree.weights, name), i < 700, "%s", name);
    }
    run_tree_close(&tree);
}

static size_t count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t n = 0;

    cr_assert_not_null(directory);
    while (readdir(directory))
        n++;
    closedir(directory);
    return n;
}

/* As while the model is being downloaded: files have their size, and cannot be read. */
Test(run_weights, unreadable_tensors_are_counted)
{
    const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    struct run_failure failure = {0};
    struct run_tensor tensor;
    struct run_tree tree;
    size_t n_descriptors;

    for (const char *name = "abc"; *name; name++)
        run_files_random(&files, (const char[]){*name, '\0'}, 4, 0, 0, 1);
    tree = run_files_open(&files);
    n_descriptors = count_descriptors();
    cr_assert_eq(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EIO), SCMP_SYS(pread64), 0), 0);
    cr_assert_eq(seccomp_load(filter), 0);
    seccomp_release(filter);
    cr_expect_eq(run_weights_get(tree.weights, "b", &tensor, &failure), -EIO);
    cr_expect_not_null(
        strstr(failure.text, "3 of 3 tensors cannot be read, among them tensors/b/raw: "), "%s",
        failure.text);
    cr_expect_eq(count_descriptors(), n_descriptors);
    run_tree_close(&tree);
}
