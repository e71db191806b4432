#include "fs/tree/core/tree_core.h"

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

/* The directory that a template of `template_bytes` bytes gives for a subject. */
struct entered {
    const char *path_template;
    size_t template_bytes;
    const void *subject;
    fs_node_index node;
};

/* A row of the table of views, with what all its nodes share. */
struct row {
    const struct fs_view *view;
    const char *name;                    /* the template's last component */
    size_t folder_bytes;                 /* of the template before it, without the '/' */
    bool is_name_fixed, is_folder_fixed; /* no placeholder */
};

struct layout {
    struct fs_tree *tree;
    void *directories; /* a tree of tsearch(3) */
    /* The last fixed directory, and the last one with a placeholder: a tensor's files share it. */
    struct entered fixed, of_subject;
};

static int compare_directories(const void *a, const void *b)
{
    const struct directory *first = a, *second = b;

    if (first->parent != second->parent)
        return first->parent < second->parent ? -1 : 1;
    return strcmp(first->name, second->name);
}

/* Find the directory of that name in `parent`, or add it. */
static int enter(struct layout *layout, fs_node_index parent, const char *name,
                 fs_node_index *directory)
{
    struct fs_nodes *nodes = &layout->tree->nodes;
    struct directory *added = malloc(sizeof *added);
    struct directory **found;
    int result;

    if (!added)
        return -ENOMEM;
    *added = (struct directory){.parent = parent, .name = name};
    found = tsearch(added, &layout->directories, compare_directories);
    if (!found || *found != added) {
        free(added);
        if (!found)
            return -ENOMEM;
        *directory = (*found)->node;
        return 0;
    }
    result = fs_nodes_add(nodes, parent, FS_DIRECTORY, name, true, directory);
    if (result < 0)
        return result;
    added->name = nodes->list[*directory].name;
    added->node = *directory;
    return 0;
}

/* Find the directory of a row's node, or add it with those above it. */
static int enter_folder(struct layout *layout, const struct row *row, const void *subject,
                        fs_node_index *folder)
{
    struct entered *last = row->is_folder_fixed ? &layout->fixed : &layout->of_subject;
    const char *path_template = row->view->path;
    char path[FS_PATH_BYTES];
    int result = 0;

    *folder = last->node;
    if ((row->is_folder_fixed || subject == last->subject) &&
        row->folder_bytes == last->template_bytes &&
        strncmp(path_template, last->path_template, row->folder_bytes) == 0)
        return 0;
    fs_path_expand(layout->tree, path_template, row->folder_bytes, subject, path);
    *folder = FS_ROOT;
    for (char *name = path, *rest; result == 0 && *name != '\0'; name = rest) {
        rest = name + strcspn(name, "/");
        if (*rest == '/')
            *rest++ = '\0';
        result = enter(layout, *folder, name, folder);
    }
    *last = (struct entered){path_template, row->folder_bytes, subject, *folder};
    return result;
}

/* Add a row's node in its directory. A name of the table is not copied. */
static int add_named(struct layout *layout, const struct row *row, const void *subject,
                     fs_node_index folder, const char *name, fs_node_index *node)
{
    const struct fs_view *view = row->view;
    struct fs_nodes *nodes = &layout->tree->nodes;
    int result;

    if (fs_view_kind(view) == FS_DIRECTORY) {
        /* An earlier row may have added it, as the directory of a file. */
        result = enter(layout, folder, name, node);
        if (result == 0 && !row->is_name_fixed)
            layout->of_subject = (struct entered){view->path, strlen(view->path), subject, *node};
        if (result < 0 || !nodes->list[*node].view)
            return result;
    }
    return fs_nodes_add(nodes, folder, fs_view_kind(view), name, !row->is_name_fixed, node);
}

static int add_node(struct layout *layout, const struct row *row, const void *subject)
{
    const struct fs_view *view = row->view;
    struct fs_tree *tree = layout->tree;
    const char *name = row->name;
    char expanded[FS_PATH_BYTES], target[FS_PATH_BYTES];
    fs_node_index folder, node = FS_NO_NODE;
    int result;

    result = enter_folder(layout, row, subject, &folder);
    if (result < 0)
        return result;
    if (!row->is_name_fixed) {
        fs_path_expand(tree, name, strlen(name), subject, expanded);
        name = expanded;
    }
    result = add_named(layout, row, subject, folder, name, &node);
    if (result < 0)
        return result;
    tree->nodes.list[node].view = view;
    tree->nodes.list[node].subject = subject;
    if (!view->target)
        return 0;
    fs_path_expand(tree, view->target, strlen(view->target), subject, target);
    return fs_nodes_set_target(&tree->nodes, node, target);
}

static struct row row_of(const struct fs_view *view)
{
    const char *slash = strrchr(view->path, '/');
    const size_t folder_bytes = slash ? (size_t)(slash - view->path) : 0;

    return (struct row){.view = view,
                        .name = slash ? slash + 1 : view->path,
                        .folder_bytes = folder_bytes,
                        .is_name_fixed = !strchr(slash ? slash : view->path, '<'),
                        .is_folder_fixed = !memchr(view->path, '<', folder_bytes)};
}

/* Add all nodes about the subjects of one kind, in order. `rows` has room for the whole table. */
static int add_subjects(struct layout *layout, const struct fs_subjects *subjects, struct row *rows)
{
    const struct fs_table *table = layout->tree->table;
    const struct fs_subject_list list = subjects->list(layout->tree);
    size_t n_rows = 0;

    for (size_t i = 0; i < table->n_views; i++) {
        if (fs_path_subjects(table, table->views[i].path) == subjects)
            rows[n_rows++] = row_of(&table->views[i]);
    }
    for (uint64_t i = 0; i < list.n; i++) {
        const void *subject = list.first ? (const char *)list.first + i * list.stride : NULL;

        for (size_t j = 0; j < n_rows; j++) {
            int result;

            if (rows[j].view->applies && !rows[j].view->applies(layout->tree, subject))
                continue;
            result = add_node(layout, &rows[j], subject);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

int fs_tree_begin(struct fs_tree *tree, fs_node_index twins[2])
{
    const struct fs_table *table = tree->table;
    const struct entered none = {.path_template = "", .node = FS_ROOT};
    struct layout layout = {.tree = tree, .fixed = none, .of_subject = none};
    struct row *rows = calloc(table->n_views, sizeof *rows);
    int result = rows ? fs_nodes_begin(&tree->nodes) : -ENOMEM;

    for (size_t i = 0; result == 0 && table->subjects[i]; i++)
        result = add_subjects(&layout, table->subjects[i], rows);
    tdestroy(layout.directories, free);
    free(rows);
    return result < 0 ? result : fs_nodes_seal(&tree->nodes, twins);
}
