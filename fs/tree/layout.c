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
    /* The last directory entered, and what its path was made from: a tensor's files share one. */
    const char *last_template;
    size_t last_bytes;
    const void *last_subject;
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

/* Find the directory that the first template_bytes bytes of a template name; add missing ones. */
static int enter_template(struct layout *layout, const char *path_template, size_t template_bytes,
                          const void *subject)
{
    char path[FS_PATH_BYTES];
    int result = 0;

    if (subject == layout->last_subject && template_bytes == layout->last_bytes &&
        strncmp(path_template, layout->last_template, template_bytes) == 0)
        return 0;
    fs_path_expand(path_template, template_bytes, layout->tree, subject, path);
    layout->last_template = path_template;
    layout->last_bytes = template_bytes;
    layout->last_subject = subject;
    layout->last = FS_ROOT;
    for (char *name = path, *rest; result == 0 && *name != '\0'; name = rest) {
        rest = name + strcspn(name, "/");
        if (*rest == '/')
            *rest++ = '\0';
        result = enter(layout, layout->last, name, &layout->last);
    }
    return result;
}

/* Add the node of that name in the directory entered last. A name of the table is not copied. */
static int add_named(struct layout *layout, const struct fs_view *view, const char *name,
                     bool is_of_table, fs_node_index *node)
{
    struct fs_nodes *nodes = &layout->tree->nodes;
    int result;

    if (view->kind == FS_DIRECTORY) {
        /* An earlier row may have added it, as the directory of a file. */
        result = enter(layout, layout->last, name, node);
        if (result < 0 || !nodes->list[*node].view)
            return result;
    }
    return fs_nodes_add(nodes, layout->last, view->kind, name, !is_of_table, node);
}

static int add_node(struct layout *layout, const struct fs_view *view, const void *subject)
{
    const char *slash = strrchr(view->path, '/');
    const char *last_component = slash ? slash + 1 : view->path;
    struct fs_tree *tree = layout->tree;
    const char *name = last_component;
    char expanded[FS_PATH_BYTES], target[FS_PATH_BYTES];
    fs_node_index node = FS_NO_NODE;
    int result;

    result = enter_template(layout, view->path, slash ? (size_t)(slash - view->path) : 0, subject);
    if (result < 0)
        return result;
    if (strchr(last_component, '<')) {
        fs_path_expand(last_component, strlen(last_component), tree, subject, expanded);
        name = expanded;
    }
    result = add_named(layout, view, name, name == last_component, &node);
    if (result < 0)
        return result;
    tree->nodes.list[node].view = view;
    tree->nodes.list[node].subject = subject;
    if (view->kind != FS_LINK)
        return 0;
    fs_path_expand(view->target, strlen(view->target), tree, subject, target);
    return fs_nodes_set_target(&tree->nodes, node, target);
}

/* Add all nodes about the subjects of one kind, in order. `views` has room for the whole table. */
static int add_subjects(struct layout *layout, const struct fs_subjects *subjects,
                        const struct fs_view **views)
{
    const uint64_t n_subjects = subjects->count(layout->tree);
    size_t n_views = 0;

    for (size_t i = 0; i < fs_view_count(); i++) {
        if (fs_path_subjects(fs_view_at(i)->path) == subjects)
            views[n_views++] = fs_view_at(i);
    }
    for (uint64_t i = 0; i < n_subjects; i++) {
        const void *subject = subjects->at(layout->tree, i);

        for (size_t j = 0; j < n_views; j++) {
            int result;

            if (views[j]->applies && !views[j]->applies(layout->tree, subject))
                continue;
            result = add_node(layout, views[j], subject);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

int fs_layout_add_nodes(struct fs_tree *tree)
{
    struct layout layout = {.tree = tree, .last_template = "", .last = FS_ROOT};
    const struct fs_view **views = calloc(fs_view_count(), sizeof *views);
    int result = views ? fs_nodes_begin(&tree->nodes) : -ENOMEM;

    for (size_t i = 0; result == 0 && fs_subjects[i]; i++)
        result = add_subjects(&layout, fs_subjects[i], views);
    tdestroy(layout.directories, free);
    free(views);
    return result;
}
