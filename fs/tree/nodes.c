#include "fs/tree/nodes.h"

#include "gguf/support/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fs_nodes_begin(struct fs_nodes *nodes)
{
    fs_node_index root;

    *nodes = (struct fs_nodes){0};
    return fs_nodes_add(nodes, FS_NO_NODE, FS_DIRECTORY, "", false, &root);
}

void fs_nodes_free(struct fs_nodes *nodes)
{
    for (size_t i = 0; i < nodes->n_owned_names; i++)
        free(nodes->owned_names[i]);
    free(nodes->owned_names);
    free(nodes->children);
    free(nodes->list);
    *nodes = (struct fs_nodes){0};
}

static const char *own_name(struct fs_nodes *nodes, const char *name)
{
    char **names =
        gguf_grow(nodes->owned_names, &nodes->owned_room, nodes->n_owned_names + 1, sizeof *names);
    char *copy;

    if (!names)
        return NULL;
    nodes->owned_names = names;
    copy = strdup(name);
    if (copy)
        names[nodes->n_owned_names++] = copy;
    return copy;
}

int fs_nodes_add(struct fs_nodes *nodes, fs_node_index parent, enum fs_node_kind kind,
                 const char *name, bool copy_name, fs_node_index *index)
{
    struct fs_node *list;

    if (nodes->count > UINT32_MAX / 2)
        return -EOVERFLOW;
    list = gguf_grow(nodes->list, &nodes->room, (size_t)nodes->count + 1, sizeof *list);
    if (!list)
        return -ENOMEM;
    nodes->list = list;
    if (copy_name) {
        name = own_name(nodes, name);
        if (!name)
            return -ENOMEM;
    }
    list[nodes->count] = (struct fs_node){.name = name,
                                          .parent = parent,
                                          .kind = kind,
                                          .size_bytes = kind == FS_FILE ? FS_SIZE_UNKNOWN : 0};
    *index = nodes->count++;
    return 0;
}

int fs_nodes_set_target(struct fs_nodes *nodes, fs_node_index link, const char *target)
{
    const char *copy = own_name(nodes, target);

    if (!copy)
        return -ENOMEM;
    nodes->list[link].target = copy;
    nodes->list[link].size_bytes = strlen(copy);
    return 0;
}

static int compare_children(const void *a, const void *b, void *argument)
{
    const struct fs_node *list = argument;
    const struct fs_node *first = &list[*(const fs_node_index *)a];
    const struct fs_node *second = &list[*(const fs_node_index *)b];

    if (first->parent != second->parent)
        return first->parent < second->parent ? -1 : 1;
    return strcmp(first->name, second->name);
}

int fs_nodes_seal(struct fs_nodes *nodes, fs_node_index twins[2])
{
    const uint32_t n_children = nodes->count - 1;

    nodes->children = calloc((size_t)n_children + 1, sizeof *nodes->children);
    if (!nodes->children)
        return -ENOMEM;
    for (uint32_t i = 0; i < n_children; i++)
        nodes->children[i] = i + 1;
    qsort_r(nodes->children, n_children, sizeof *nodes->children, compare_children, nodes->list);

    for (uint32_t i = 0; i < n_children; i++) {
        const struct fs_node *child = &nodes->list[nodes->children[i]];
        struct fs_node *parent = &nodes->list[child->parent];

        if (i > 0 &&
            compare_children(&nodes->children[i - 1], &nodes->children[i], nodes->list) == 0) {
            twins[0] = nodes->children[i - 1];
            twins[1] = nodes->children[i];
            return -EEXIST;
        }
        if (parent->n_children++ == 0)
            parent->first_child = i;
        if (fs_node_is_directory(child))
            parent->n_folders++;
    }
    return 0;
}

fs_node_index fs_nodes_find(const struct fs_nodes *nodes, fs_node_index directory, const char *name)
{
    const fs_node_index *children = nodes->children + nodes->list[directory].first_child;
    uint32_t low = 0, high = nodes->list[directory].n_children;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const int order = strcmp(name, nodes->list[children[middle]].name);

        if (order == 0)
            return children[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return FS_NO_NODE;
}
