#include "tests/unit/runner/metadata_files.h"
#include "tests/unit/runner/tree_copy.h"

#include "tests/unit/fs/tree_file.h"
#include "tests/unit/runner/run_tree_files.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 512

static void copy_file(struct fs_tree *tree, fs_node_index index, const char *path)
{
    FILE *out = fopen(path, "w");
    const struct fs_image *image;
    char *bytes;

    cr_assert_not_null(out, "%s", path);
    cr_assert_eq(fs_tree_open(tree, index, NULL, &image), 0, "%s", path);
    bytes = malloc(image->size_bytes);
    cr_assert_not_null(bytes);
    cr_assert_eq(fs_image_read(image, 0, image->size_bytes, bytes), (ssize_t)image->size_bytes,
                 "%s", path);
    cr_assert_eq(fwrite(bytes, 1, image->size_bytes, out), image->size_bytes, "%s", path);
    cr_assert_eq(fclose(out), 0, "%s", path);
    free(bytes);
    fs_tree_close(tree, image);
}

/* Copy info and raw of a tensor, or its link. */
static void copy_tensor(struct fs_tree *tree, fs_node_index index, const char *path)
{
    static const char *const files[] = {"info", "raw"};
    const struct fs_node *node = &tree->nodes.list[index];
    char name[PATH_BYTES + 16];

    if (node->kind == FS_LINK) {
        cr_assert_eq(symlink(node->target, path), 0, "%s: %d", path, errno);
        return;
    }
    cr_assert_eq(mkdir(path, 0700), 0, "%s: %d", path, errno);
    for (size_t i = 0; i < 2; i++) {
        const fs_node_index file = fs_nodes_find(&tree->nodes, index, files[i]);

        cr_assert_neq(file, FS_NO_NODE, "%s", path);
        snprintf(name, sizeof name, "%s/%s", path, files[i]);
        copy_file(tree, file, name);
    }
}

void tree_copy_make(const struct gguf_model *model, struct tree_copy *copy)
{
    struct fs_tree *tree = tree_file_make_tree(model);
    const fs_node_index tensors = tree_file_find(tree, "tensors");
    const fs_node_index metadata = tree_file_find(tree, "metadata");
    const struct fs_node *directory = &tree->nodes.list[metadata];
    char path[PATH_BYTES];

    /* Use memory if possible: the copy has many small files. */
    snprintf(copy->path, sizeof copy->path, "/dev/shm/ggufs-tree-XXXXXX");
    if (!mkdtemp(copy->path)) {
        snprintf(copy->path, sizeof copy->path, "/tmp/ggufs-tree-XXXXXX");
        cr_assert_not_null(mkdtemp(copy->path));
    }
    snprintf(path, sizeof path, "%s/metadata", copy->path);
    cr_assert_eq(mkdir(path, 0700), 0);
    for (uint32_t i = 0; i < directory->n_children; i++) {
        const fs_node_index child = tree->nodes.children[directory->first_child + i];

        snprintf(path, sizeof path, "%s/metadata/%s", copy->path, tree->nodes.list[child].name);
        copy_file(tree, child, path);
    }
    snprintf(path, sizeof path, "%s/tensors.json", copy->path);
    copy_file(tree, tree_file_find(tree, "tensors.json"), path);
    directory = &tree->nodes.list[tensors];
    snprintf(path, sizeof path, "%s/tensors", copy->path);
    cr_assert_eq(mkdir(path, 0700), 0);
    for (uint32_t i = 0; i < directory->n_children; i++) {
        const fs_node_index child = tree->nodes.children[directory->first_child + i];

        snprintf(path, sizeof path, "%s/tensors/%s", copy->path, tree->nodes.list[child].name);
        copy_tensor(tree, child, path);
    }
    fs_tree_free(tree);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

void tree_copy_remove(const struct tree_copy *copy)
{
    cr_assert_eq(nftw(copy->path, remove_one, 16, FTW_PHYS | FTW_DEPTH), 0);
}

struct run_tree tree_copy_open(const struct tree_copy *copy)
{
    struct run_failure failure = {0};
    struct run_tree tree;

    run_files_list(copy->path);
    cr_assert_eq(run_tree_open(copy->path, &tree, &failure), 0, "%s", failure.text);
    return tree;
}

void tree_copy_hide(const struct tree_copy *copy, const char *tensor, const char *other)
{
    char path[PATH_BYTES], aside[PATH_BYTES];

    snprintf(path, sizeof path, "%s/tensors/%s", copy->path, tensor);
    snprintf(aside, sizeof aside, "%s/aside", copy->path);
    cr_assert_eq(rename(path, aside), 0, "%s", path);
    if (other)
        cr_assert_eq(symlink(other, path), 0, "%s", path);
}

void tree_copy_restore(const struct tree_copy *copy, const char *tensor)
{
    char path[PATH_BYTES], aside[PATH_BYTES];

    snprintf(path, sizeof path, "%s/tensors/%s", copy->path, tensor);
    snprintf(aside, sizeof aside, "%s/aside", copy->path);
    unlink(path);
    cr_assert_eq(rename(aside, path), 0, "%s", path);
}
