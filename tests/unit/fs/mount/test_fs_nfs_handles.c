/* fs/mount/inodes: what file handles refer to. */
#include "fs/mount/inodes.h"

#include <criterion/criterion.h>
#include <errno.h>

#include "fs/tree/identity.h"
#include "tests/unit/fs/tree_file.h"
#include "tests/unit/gguf/model_file.h"

TestSuite(fs_nfs_handles, .init = model_file_begin_test);

static struct gguf_model *a_model(struct fs_tree **tree)
{
    struct gguf_model *model = model_file_rich_model(2);

    *tree = tree_file_make_tree(model);
    return model;
}

static void expect_found(const struct fs_nodes *nodes, fs_node_index inode_of, const char *name,
                         fs_node_index expected)
{
    fs_node_index index;

    cr_assert_eq(fs_nfs_lookup(nodes, FS_ROOT, (fuse_ino_t)inode_of + FUSE_ROOT_ID, name, &index),
                 0);
    cr_expect_eq(index, expected, "%s of inode %u", name, inode_of + 1);
}

Test(fs_nfs_handles, dots)
{
    struct fs_tree *tree;
    struct gguf_model *model = a_model(&tree);
    const fs_node_index tensors = tree_file_find(tree, "tensors"),
                        raw = tree_file_find(tree, "tensors/a%2Fb/raw"),
                        folder = tree->nodes.list[raw].parent;

    expect_found(&tree->nodes, raw, ".", raw);
    expect_found(&tree->nodes, raw, "..", folder);
    expect_found(&tree->nodes, folder, "raw", raw);
    expect_found(&tree->nodes, folder, "..", tensors);
    expect_found(&tree->nodes, tensors, "..", FS_ROOT);
    expect_found(&tree->nodes, FS_ROOT, ".", FS_ROOT);
    expect_found(&tree->nodes, FS_ROOT, "..", FS_ROOT);
    expect_found(&tree->nodes, FS_ROOT, "nothing", FS_NO_NODE);
    expect_found(&tree->nodes, raw, "raw", FS_NO_NODE);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_nfs_handles, mounted_directory)
{
    struct fs_tree *tree;
    struct gguf_model *model = a_model(&tree);
    const struct fs_nodes *nodes = &tree->nodes;
    const fs_node_index tensors = tree_file_find(tree, "tensors"),
                        metadata = tree_file_find(tree, "metadata.json"),
                        raw = tree_file_find(tree, "tensors/a%2Fb/raw"),
                        folder = nodes->list[raw].parent;
    static const char *const dots[] = {".", ".."};
    fs_node_index index;

    for (int i = 0; i < 2; i++) {
        cr_assert_eq(fs_nfs_lookup(nodes, tensors, FUSE_ROOT_ID, dots[i], &index), 0);
        cr_expect_eq(index, tensors);
        cr_assert_eq(fs_nfs_lookup(nodes, tensors, raw + FUSE_ROOT_ID, dots[i], &index), 0);
        cr_expect_eq(index, i == 0 ? raw : folder);
        cr_expect_eq(fs_nfs_lookup(nodes, tensors, metadata + FUSE_ROOT_ID, dots[i], &index),
                     -ESTALE);
    }
    cr_assert_eq(fs_nfs_lookup(nodes, tensors, FUSE_ROOT_ID, "a%2Fb", &index), 0);
    cr_expect_eq(index, folder);
    cr_assert_eq(fs_nfs_lookup(nodes, tensors, folder + FUSE_ROOT_ID, "..", &index), 0);
    cr_expect_eq(index, tensors);
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_nfs_handles, numbers_beyond_the_tree)
{
    struct fs_tree *tree;
    struct gguf_model *model = a_model(&tree);
    const fuse_ino_t last = tree->nodes.count; /* FUSE_ROOT_ID is 1 */
    const fuse_ino_t wrong[] = {0,          last + 1,   1u << 31,
                                UINT32_MAX, UINT64_MAX, ((fuse_ino_t)1 << 32) + FUSE_ROOT_ID};
    fs_node_index index;

    cr_expect_eq(fs_nfs_lookup(&tree->nodes, FS_ROOT, last, ".", &index), 0);
    cr_expect_eq(index, tree->nodes.count - 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        cr_expect_eq(fs_nfs_lookup(&tree->nodes, FS_ROOT, wrong[i], ".", &index), -ESTALE);
        cr_expect_eq(fs_nfs_lookup(&tree->nodes, FS_ROOT, wrong[i], "..", &index), -ESTALE);
        cr_expect_eq(fs_nfs_lookup(&tree->nodes, FS_ROOT, wrong[i], "tensors", &index), -ESTALE);
    }
    fs_tree_free(tree);
    gguf_close(model);
}

Test(fs_nfs_handles, generation)
{
    struct fs_tree *tree, *again;
    struct gguf_model *model = a_model(&tree);

    again = tree_file_make_tree(model);
    cr_expect_eq((uint32_t)fs_tree_identity(tree, 0), (uint32_t)fs_tree_identity(again, 0));
    cr_expect_neq((uint32_t)fs_tree_identity(tree, 0), (uint32_t)fs_tree_identity(tree, 1));
    /* Another version of ggufs may have other files. */
    again->nodes.count--;
    cr_expect_neq((uint32_t)fs_tree_identity(tree, 0), (uint32_t)fs_tree_identity(again, 0));
    fs_tree_free(again);
    fs_tree_free(tree);
    gguf_close(model);
}
