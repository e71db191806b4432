#include "fs/tree/layout.h"

#include "fs/tree/paths.h"
#include "fs/tree/tree.h"
#include "fs/tree/views.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* A directory that has been added, found by its parent and name. */
struct directory {
    fs_node_index parent;
    const char *name; /* owned by the node */
    fs_node_index node;
};

struct layout {
    struct fs_tree *tree;
    void *directories; /* a tree of tsearch(3) */
    /* The last directory looked up: files of one directory follow each other. */
    char last_path[FS_PATH_BYTES];
    fs_node_index last;
};

static int compare_directories(const void *a, const void *b)
{
    const struct directory *first = a, *second = b;

    if (first->parent != second->parent)
        return first->parent < second->parent ? -1 : 1;
    return strcmp(first->name, second->name);
}

/* Record a directory node, unless one of its name exists already. */
static int remember(struct layout *layout, fs_node_index node)
{
    const struct fs_node *added = fs_tree_node(layout->tree, node);
    struct directory *directory = malloc(sizeof *directory);
    struct directory **found;

    if (!directory)
        return -ENOMEM;
    *directory = (struct directory){added->parent, added->name, node};
    found = tsearch(directory, &layout->directories, compare_directories);
    if (!found || *found != directory)
        free(directory);
    return found ? 0 : -ENOMEM;
}

/* Find the directory of that name in `parent`, or add it. */
static int enter(struct layout *layout, fs_node_index parent, const char *name,
                 fs_node_index *directory)
{
    struct directory key = {.parent = parent, .name = name};
    struct directory **found = tfind(&key, &layout->directories, compare_directories);
    int result;

    if (found) {
        *directory = (*found)->node;
        return 0;
    }
    result = fs_nodes_add(&layout->tree->nodes, parent, FS_DIRECTORY, name, true, directory);
    return result < 0 ? result : remember(layout, *directory);
}

/* Find the directory of the last component of a path; add missing directories. */
static int enter_parent(struct layout *layout, const char *path, fs_node_index *parent)
{
    const char *slash = strrchr(path, '/');
    const size_t parent_bytes = slash ? (size_t)(slash - path) : 0;
    int result = 0;

    if (strncmp(path, layout->last_path, parent_bytes) == 0 &&
        layout->last_path[parent_bytes] == '\0') {
        *parent = layout->last;
        return 0;
    }
    memcpy(layout->last_path, path, parent_bytes);
    layout->last_path[parent_bytes] = '\0';
    layout->last = FS_ROOT;
    for (const char *at = path; result == 0 && at < path + parent_bytes;) {
        const size_t length = strcspn(at, "/");
        char name[FS_NAME_BYTES];

        memcpy(name, at, length);
        name[length] = '\0';
        result = enter(layout, layout->last, name, &layout->last);
        at += length + 1;
    }
    *parent = layout->last;
    return result;
}

/* Add the node of a path in the directory `parent`. */
static int add_named(struct layout *layout, const struct fs_view *view, fs_node_index parent,
                     const char *path, fs_node_index *node)
{
    struct fs_nodes *nodes = &layout->tree->nodes;
    const char *in_table = strrchr(view->path, '/');
    const char *name = strrchr(path, '/');
    int result;

    in_table = in_table ? in_table + 1 : view->path;
    name = name ? name + 1 : path;
    if (view->kind == FS_DIRECTORY) {
        /* An earlier row may have added it, as the directory of a file. */
        result = enter(layout, parent, name, node);
        if (result < 0 || !nodes->list[*node].view)
            return result;
    }
    /* A name from the table need not be copied. */
    if (strcmp(name, in_table) == 0)
        return fs_nodes_add(nodes, parent, view->kind, in_table, false, node);
    return fs_nodes_add(nodes, parent, view->kind, name, true, node);
}

static int add_node(struct layout *layout, const struct fs_view *view, const void *subject)
{
    struct fs_tree *tree = layout->tree;
    char path[FS_PATH_BYTES], target[FS_PATH_BYTES];
    fs_node_index parent = FS_NO_NODE, node = FS_NO_NODE;
    int result;

    fs_path_expand(view->path, tree, subject, path);
    result = enter_parent(layout, path, &parent);
    if (result == 0)
        result = add_named(layout, view, parent, path, &node);
    if (result < 0)
        return result;
    tree->nodes.list[node].view = view;
    tree->nodes.list[node].subject = subject;
    if (view->kind != FS_LINK)
        return 0;
    fs_path_expand(view->target, tree, subject, target);
    return fs_nodes_set_target(&tree->nodes, node, target);
}

/* Add all nodes about the subjects of one kind, in order. */
static int add_subjects(struct layout *layout, const struct fs_subjects *subjects)
{
    const uint64_t n_subjects = subjects->count(layout->tree);

    for (uint64_t i = 0; i < n_subjects; i++) {
        const void *subject = subjects->at(layout->tree, i);

        for (size_t j = 0; j < fs_view_count(); j++) {
            const struct fs_view *view = fs_view_at(j);
            int result;

            if (fs_path_subjects(view->path) != subjects ||
                (view->applies && !view->applies(layout->tree, subject)))
                continue;
            result = add_node(layout, view, subject);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

int fs_layout_add_nodes(struct fs_tree *tree)
{
    struct layout *layout = calloc(1, sizeof *layout);
    int result = layout ? fs_nodes_begin(&tree->nodes) : -ENOMEM;

    if (layout)
        layout->tree = tree;
    for (size_t i = 0; result == 0 && fs_subjects[i]; i++)
        result = add_subjects(layout, fs_subjects[i]);
    if (layout)
        tdestroy(layout->directories, free);
    free(layout);
    return result;
}
