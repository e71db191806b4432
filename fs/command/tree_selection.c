#include "fs/command/tree_selection.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

int fs_selection_begin(struct fs_selection *selection, const struct fs_tree *tree)
{
    selection->tree = tree;
    selection->choices = calloc(tree->nodes.count, sizeof *selection->choices);
    return selection->choices ? 0 : -ENOMEM;
}

void fs_selection_end(struct fs_selection *selection)
{
    free(selection->choices);
    selection->choices = NULL;
}

static void choose_below(struct fs_selection *selection, fs_node_index node)
{
    const struct fs_tree *tree = selection->tree;

    if (selection->choices[node] == FS_CHOSEN)
        return;
    selection->choices[node] = FS_CHOSEN;
    for (uint32_t i = 0; i < fs_tree_node(tree, node)->n_children; i++)
        choose_below(selection, fs_tree_child(tree, node, i));
}

static void choose(struct fs_selection *selection, fs_node_index node)
{
    const struct fs_tree *tree = selection->tree;

    choose_below(selection, node);
    while (node != FS_ROOT) {
        node = fs_tree_node(tree, node)->parent;
        if (selection->choices[node] == FS_NOT_CHOSEN)
            selection->choices[node] = FS_HOLDS_CHOSEN;
    }
}

/* Return the directory that a link leads to, the node itself if it is not a link, or FS_NO_NODE. */
static fs_node_index follow(const struct fs_tree *tree, fs_node_index node)
{
    if (fs_tree_node(tree, node)->kind == FS_LINK && fs_tree_follow(tree, node, &node) < 0)
        return FS_NO_NODE;
    return fs_tree_node(tree, node)->kind == FS_DIRECTORY ? node : FS_NO_NODE;
}

/* Choose the nodes that match `rest` of a pattern, from a node on. Returns their number. */
static uint64_t match(struct fs_selection *selection, fs_node_index node, const char *rest)
{
    const struct fs_tree *tree = selection->tree;
    const char *start = rest + strspn(rest, "/");
    const size_t length = strcspn(start, "/");
    char component[FS_PATH_BYTES];
    fs_node_index child;
    uint64_t count = 0;

    if (length == 0 && start == rest) {
        choose(selection, node);
        return 1;
    }
    node = follow(tree, node);
    if (node == FS_NO_NODE || length >= sizeof component)
        return 0;
    memcpy(component, start, length);
    component[length] = '\0';
    rest = start + length;
    if (length == 0 || strcmp(component, ".") == 0)
        return match(selection, node, rest);
    if (strcmp(component, "..") == 0)
        return match(selection, node == FS_ROOT ? node : fs_tree_node(tree, node)->parent, rest);
    child = fs_nodes_find(&tree->nodes, node, component);
    if (child != FS_NO_NODE)
        return match(selection, child, rest);
    for (uint32_t i = 0; i < fs_tree_node(tree, node)->n_children; i++) {
        child = fs_tree_child(tree, node, i);
        if (fnmatch(component, fs_tree_node(tree, child)->name, 0) == 0)
            count += match(selection, child, rest);
    }
    return count;
}

uint64_t fs_selection_add(struct fs_selection *selection, const char *pattern)
{
    return match(selection, FS_ROOT, pattern);
}

void fs_selection_add_links(struct fs_selection *selection)
{
    const struct fs_tree *tree = selection->tree;

    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        fs_node_index target;

        if (fs_tree_node(tree, i)->kind == FS_LINK && fs_tree_follow(tree, i, &target) == 0 &&
            fs_choice_of(selection, target) != FS_NOT_CHOSEN)
            choose(selection, i);
    }
}
