/* The public interface: files of the tree. */
#include <criterion/criterion.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fs/library/ggufs.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(library_tree);

static struct ggufs_model *open_rich(const char *options)
{
    struct model_bytes bytes = model_file_rich(&model_encodings[2]);
    const int descriptor = model_file_create(bytes.data, bytes.size_bytes);
    struct ggufs_model *model;
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_assert_eq(ggufs_open(path, options, &model, NULL), 0);
    close(descriptor);
    free(bytes.data);
    return model;
}

static ggufs_node find(struct ggufs_model *model, const char *path)
{
    ggufs_node node = UINT32_MAX;

    cr_assert_eq(ggufs_find_node(model, path, &node), 0, "%s", path);
    return node;
}

/* Compare a node and all below it with the tree. Returns the number of files. */
static unsigned compare(struct ggufs_model *model, ggufs_node node, struct fs_tree *tree,
                        fs_node_index index)
{
    const struct fs_node *expected = fs_tree_node(tree, index);
    struct ggufs_node_info info;
    uint64_t size_bytes, expected_bytes;
    ggufs_node child;
    unsigned n = 0;

    cr_assert_eq(ggufs_describe_node(model, node, &info), 0);
    cr_assert_eq((int)info.kind, (int)expected->kind);
    cr_expect_str_eq(info.name, index == FS_ROOT ? "" : expected->name);
    cr_expect_eq(info.n_children, expected->n_children);
    cr_expect_eq(info.target != NULL, info.kind == GGUFS_LINK);
    cr_assert_eq(ggufs_node_size(model, node, &size_bytes), 0);
    cr_assert_eq(fs_tree_size(tree, index, NULL, &expected_bytes), 0);
    cr_expect_eq(size_bytes, expected_bytes, "%s", info.name);
    for (uint32_t i = 0; i < info.n_children; i++) {
        struct ggufs_node_info below;

        cr_assert_eq(ggufs_child(model, node, i, &child), 0);
        cr_assert_eq(ggufs_describe_node(model, child, &below), 0);
        cr_expect_eq(below.parent, node);
        n += compare(model, child, tree, fs_tree_child(tree, index, i));
    }
    if (info.kind == GGUFS_FILE) {
        char *bytes = malloc(size_bytes + 1), *same = malloc(size_bytes + 1);
        const struct fs_image *image;
        struct ggufs_file *file;

        cr_assert_eq(ggufs_open_file(model, node, &file), 0);
        cr_assert_eq(fs_tree_open(tree, index, NULL, &image), 0);
        cr_expect_eq(ggufs_pread(file, bytes, size_bytes + 1, 0), (int64_t)size_bytes);
        cr_expect_eq(fs_image_read(image, 0, size_bytes + 1, same), (int64_t)size_bytes);
        cr_expect_arr_eq(bytes, same, size_bytes, "%s", info.name);
        cr_expect_eq(ggufs_pread(file, bytes, 10, size_bytes), 0);
        cr_expect_eq(ggufs_pread(file, bytes, 10, UINT64_MAX), 0);
        fs_tree_close(tree, image);
        ggufs_close_file(file);
        free(bytes);
        free(same);
        return 1;
    }
    cr_expect_eq(ggufs_child(model, node, info.n_children, &child),
                 info.kind == GGUFS_DIRECTORY ? -ERANGE : -ENOTDIR);
    return n;
}

Test(library_tree, is_the_tree)
{
    struct ggufs_model *model = open_rich(NULL);
    struct model_bytes bytes = model_file_rich(&model_encodings[2]);
    struct fs_findings findings = {0};
    struct gguf_report report = {.each = fs_findings_add, .user = &findings};
    struct gguf_model *same;
    struct fs_tree *tree;

    cr_assert_eq(model_file_open(bytes.data, bytes.size_bytes, &same, &report), 0);
    cr_assert_gt(findings.n_findings, 0u);
    cr_assert_eq(fs_tree_make(same, &(struct fs_tree_options){.findings = &findings}, &tree,
                              &(struct gguf_report){0}),
                 0);
    cr_expect_gt(compare(model, GGUFS_ROOT, tree, FS_ROOT), 60u);
    ggufs_close(model);
    fs_tree_free(tree);
    gguf_close(same);
    free(bytes.data);
}

Test(library_tree, errors)
{
    struct ggufs_model *model = open_rich(NULL);
    struct ggufs_file *file;
    struct ggufs_node_info info;
    ggufs_node node;
    uint64_t size_bytes;

    cr_expect_eq(ggufs_find_node(model, "", &node), 0);
    cr_expect_eq(node, GGUFS_ROOT);
    cr_expect_eq(find(model, "/tensors//"), find(model, "tensors"));
    cr_expect_eq(find(model, "layers/0/attn_q.weight/f32"),
                 find(model, "tensors/blk.0.attn_q.weight/f32"));
    cr_expect_eq(ggufs_find_node(model, "tensors/none", &node), -ENOENT);
    cr_expect_eq(ggufs_find_node(model, "summary.txt/x", &node), -ENOTDIR);
    cr_expect_eq(ggufs_describe_node(model, UINT32_MAX, &info), -ENOENT);
    cr_expect_eq(ggufs_child(model, UINT32_MAX, 0, &node), -ENOENT);
    cr_expect_eq(ggufs_node_size(model, UINT32_MAX, &size_bytes), -ENOENT);
    cr_expect_eq(ggufs_open_file(model, UINT32_MAX, &file), -ENOENT);
    cr_expect_eq(ggufs_open_file(model, GGUFS_ROOT, &file), -EISDIR);
    cr_assert_eq(ggufs_child(model, find(model, "layers/0"), 0, &node), 0);
    cr_expect_eq(ggufs_open_file(model, node, &file), -EINVAL);
    ggufs_close_file(NULL);
    ggufs_close(model);
}

static void read_text(struct ggufs_model *model, const char *path, char *text, size_t n_bytes)
{
    struct ggufs_file *file;
    int64_t n;

    cr_assert_eq(ggufs_open_file(model, find(model, path), &file), 0);
    n = ggufs_pread(file, text, n_bytes - 1, 0);
    cr_assert_geq(n, 0);
    text[n] = '\0';
    ggufs_close_file(file);
}

Test(library_tree, options_reach_it)
{
    struct ggufs_model *model = open_rich("split=1M,export=f16");
    char text[4096];

    read_text(model, "summary.txt", text, sizeof text);
    cr_expect_not_null(strstr(text, "architecture    llama"));
    find(model, "split");
    ggufs_close(model);
}

/* The first calls of several threads make one tree. */
static void *find_in_thread(void *user)
{
    ggufs_node node;

    return ggufs_find_node(user, "tensors", &node) == 0 ? (void *)(uintptr_t)node : NULL;
}

Test(library_tree, threads_share_it)
{
    struct ggufs_model *model = open_rich(NULL);
    pthread_t threads[8];
    void *node;

    for (size_t i = 0; i < COUNT(threads); i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, find_in_thread, model), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        pthread_join(threads[i], &node);
        cr_expect_eq((uintptr_t)node, find(model, "tensors"));
    }
    ggufs_close(model);
}

/* A computation of all data, of a file that is one hole. */
struct reading {
    struct ggufs_model *model;
    atomic_bool has_ended;
    int64_t result;
};

static void *read_checksums(void *user)
{
    struct reading *reading = user;
    struct ggufs_file *file;
    char byte;

    reading->result = ggufs_open_file(reading->model, find(reading->model, "SHA256SUMS"), &file);
    if (reading->result == 0) {
        reading->result = ggufs_pread(file, &byte, 1, 0);
        ggufs_close_file(file);
    }
    atomic_store(&reading->has_ended, true);
    return NULL;
}

Test(library_tree, long_calls_can_be_cancelled)
{
    const uint64_t n_bytes = 1ull << 42;
    struct gguf_writer *w = gguf_writer_open(3, false);
    struct reading reading = {0};
    struct model_bytes bytes;
    pthread_t thread;
    int descriptor;
    char path[64];

    gguf_writer_add_tensor(w, "t", 1, 1, (uint64_t[]){n_bytes}, 24, NULL, 0);
    bytes = model_file_finish(w);
    descriptor = model_file_create(bytes.data, bytes.size_bytes);
    cr_assert_eq(ftruncate(descriptor, (off_t)(n_bytes + bytes.size_bytes)), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    cr_assert_eq(ggufs_open(path, NULL, &reading.model, NULL), 0);
    cr_assert_eq(pthread_create(&thread, NULL, read_checksums, &reading), 0);
    while (!atomic_load(&reading.has_ended)) {
        usleep(1000);
        ggufs_cancel(reading.model);
    }
    pthread_join(thread, NULL);
    cr_expect_eq(reading.result, -ECANCELED);
    ggufs_close(reading.model);
    close(descriptor);
    free(bytes.data);
}

Test(library_tree, texts_do_not_depend_on_the_locale)
{
    struct ggufs_model *model = open_rich(NULL);
    char text[65536], same[65536];

    read_text(model, "tensors/a%2Fb/stats.json", text, sizeof text);
    ggufs_close(model);
    if (!setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_skip_test("the locale de_DE.UTF-8 is not installed");
    model = open_rich(NULL);
    read_text(model, "tensors/a%2Fb/stats.json", same, sizeof same);
    cr_expect_str_eq(text, same);
    ggufs_close(model);
}
