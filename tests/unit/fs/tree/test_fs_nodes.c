/* The list of nodes: look-up by name, duplicate names, many nodes, links. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/tree/core/nodes.h"

static fs_node_index add(struct fs_nodes *nodes, fs_node_index parent, const char *name,
                         bool is_file)
{
    fs_node_index index = FS_NO_NODE;

    cr_assert_eq(fs_nodes_add(nodes, parent, is_file ? FS_FILE : FS_DIRECTORY, name, true, &index),
                 0);
    return index;
}

Test(fs_nodes, look_up_within_a_directory)
{
    struct fs_nodes nodes;
    fs_node_index twins[2], a, b, a_b, a_b_c;

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    b = add(&nodes, FS_ROOT, "b", true);
    a = add(&nodes, FS_ROOT, "a", false);
    a_b = add(&nodes, a, "b", false);
    a_b_c = add(&nodes, a_b, "c", true);
    cr_assert_eq(fs_nodes_seal(&nodes, twins), 0);

    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "a"), a);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "b"), b);
    cr_expect_eq(fs_nodes_find(&nodes, a, "b"), a_b);
    cr_expect_eq(fs_nodes_find(&nodes, a_b, "c"), a_b_c);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "c"), FS_NO_NODE);
    cr_expect_eq(fs_nodes_find(&nodes, a, "a"), FS_NO_NODE);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, ""), FS_NO_NODE);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "ab"), FS_NO_NODE);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "B"), FS_NO_NODE);

    cr_expect_eq(nodes.list[FS_ROOT].n_children, 2u);
    cr_expect_eq(nodes.list[FS_ROOT].n_folders, 1u);
    cr_expect_eq(nodes.list[a].n_children, 1u);
    cr_expect_eq(nodes.list[a].n_folders, 1u);
    cr_expect_eq(nodes.list[a_b].n_folders, 0u);
    cr_expect_eq(nodes.list[b].n_children, 0u);
    cr_expect_eq(fs_nodes_find(&nodes, b, "c"), FS_NO_NODE);
    cr_expect_eq(nodes.list[a_b_c].parent, a_b);
    cr_expect_eq(nodes.list[b].size_bytes, FS_SIZE_UNKNOWN);
    fs_nodes_free(&nodes);
}

Test(fs_nodes, an_empty_tree)
{
    struct fs_nodes nodes;
    fs_node_index twins[2];

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    cr_assert_eq(fs_nodes_seal(&nodes, twins), 0);
    cr_expect_eq(fs_nodes_find(&nodes, FS_ROOT, "a"), FS_NO_NODE);
    cr_expect_eq(nodes.list[FS_ROOT].n_children, 0u);
    fs_nodes_free(&nodes);
}

Test(fs_nodes, duplicate_names_are_refused)
{
    struct fs_nodes nodes;
    fs_node_index twins[2] = {0}, folder, first, second;

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    folder = add(&nodes, FS_ROOT, "folder", false);
    add(&nodes, FS_ROOT, "same", true);
    first = add(&nodes, folder, "same", true);
    add(&nodes, folder, "other", true);
    second = add(&nodes, folder, "same", false);
    cr_expect_eq(fs_nodes_seal(&nodes, twins), -EEXIST);
    cr_expect((twins[0] == first && twins[1] == second) ||
              (twins[0] == second && twins[1] == first));
    fs_nodes_free(&nodes);
}

Test(fs_nodes, many_children_in_many_directories)
{
    enum { FOLDERS = 100, FILES = 100 };
    struct fs_nodes nodes;
    fs_node_index twins[2], folders[FOLDERS];
    char name[16];

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "f%d", i);
        folders[i] = add(&nodes, FS_ROOT, name, false);
    }
    for (int j = FILES - 1; j >= 0; j--) {
        snprintf(name, sizeof name, "%d", j);
        for (int i = 0; i < FOLDERS; i++)
            add(&nodes, folders[i], name, true);
    }
    cr_assert_eq(fs_nodes_seal(&nodes, twins), 0);
    for (int i = 0; i < FOLDERS; i++) {
        const struct fs_node *folder = &nodes.list[folders[i]];

        cr_assert_eq(folder->n_children, (uint32_t)FILES);
        for (uint32_t j = 0; j < FILES; j++) {
            const fs_node_index child = nodes.children[folder->first_child + j];

            cr_assert_eq(nodes.list[child].parent, folders[i]);
            cr_assert(j == 0 || strcmp(nodes.list[nodes.children[folder->first_child + j - 1]].name,
                                       nodes.list[child].name) < 0);
            cr_assert_eq(fs_nodes_find(&nodes, folders[i], nodes.list[child].name), child);
        }
    }
    fs_nodes_free(&nodes);
}

Test(fs_nodes, copies_names_on_request)
{
    struct fs_nodes nodes;
    fs_node_index copied, kept;
    char name[] = "name";

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    cr_assert_eq(fs_nodes_add(&nodes, FS_ROOT, FS_FILE, name, true, &copied), 0);
    cr_assert_eq(fs_nodes_add(&nodes, FS_ROOT, FS_FILE, name, false, &kept), 0);
    name[0] = 'N';
    cr_expect_str_eq(nodes.list[copied].name, "name");
    cr_expect_eq(nodes.list[kept].name, name);
    fs_nodes_free(&nodes);
}

Test(fs_nodes, links_are_neither_files_nor_directories)
{
    struct fs_nodes nodes;
    fs_node_index twins[2], link;
    char target[] = "old";

    cr_assert_eq(fs_nodes_begin(&nodes), 0);
    cr_assert_eq(fs_nodes_add(&nodes, FS_ROOT, FS_DIRECTORY, "old", false, &link), 0);
    cr_assert_eq(fs_nodes_add(&nodes, FS_ROOT, FS_LINK, "today", false, &link), 0);
    cr_assert_eq(fs_nodes_set_target(&nodes, link, target), 0);
    target[0] = 'O';
    cr_assert_eq(fs_nodes_seal(&nodes, twins), 0);
    link = fs_nodes_find(&nodes, FS_ROOT, "today");
    cr_assert_neq(link, FS_NO_NODE);
    cr_expect_str_eq(nodes.list[link].target, "old");
    cr_expect_not(fs_node_is_directory(&nodes.list[link]));
    cr_expect_eq(nodes.list[FS_ROOT].n_folders, 1u);
    fs_nodes_free(&nodes);
}
