#include "fs/tree/core/nodes.h"

#include "gguf/support/arrays.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fs_nodes_begin(struct fs_nodes *nodes)
{
    fs_node_index root;

    *nodes = (struct fs_nodes){0};
    return fs_nodes_add(nodes, FS_NO_NODE, FS_DIRECTORY, "", false, &root);
}

/* Room for many texts. `before` is the previous block, which is full. */
struct fs_text_block {
    struct fs_text_block *before;
    size_t used;
    char text[16384];
};

void fs_nodes_free(struct fs_nodes *nodes)
{
    for (struct fs_text_block *block = nodes->texts, *before; block; block = before) {
        before = block->before;
        free(block);
    }
    free(nodes->children);
    free(nodes->list);
    *nodes = (struct fs_nodes){0};
}

/* Return a copy of a text, which is much shorter than a block; NULL if out of memory. */
static const char *copy_text(struct fs_nodes *nodes, const char *text)
{
    const size_t n_bytes = strlen(text) + 1;
    struct fs_text_block *block = nodes->texts;

    assert(n_bytes <= sizeof block->text);
    if (!block || n_bytes > sizeof block->text - block->used) {
        block = malloc(sizeof *block);
        if (!block)
            return NULL;
        block->before = nodes->texts;
        block->used = 0;
        nodes->texts = block;
    }
    block->used += n_bytes;
    return memcpy(block->text + block->used - n_bytes, text, n_bytes);
}

int fs_nodes_add(struct fs_nodes *nodes, fs_node_index parent, enum fs_node_kind kind,
                 const char *name, bool copy_name, fs_node_index *index)
{
    struct fs_node *list, *directory;

    if (nodes->count > UINT32_MAX / 2)
        return -EOVERFLOW;
    if (gguf_reserve(&nodes->list, &nodes->room, (size_t)nodes->count + 1, sizeof *list) < 0)
        return -ENOMEM;
    list = nodes->list;
    if (copy_name) {
        name = copy_text(nodes, name);
        if (!name)
            return -ENOMEM;
    }
    list[nodes->count] = (struct fs_node){.name = name, .parent = parent, .kind = kind};
    if (kind == FS_FILE)
        list[nodes->count].size_bytes = FS_SIZE_UNKNOWN;
    if (nodes->count != FS_ROOT) {
        directory = &list[parent];
        directory->n_children++;
        directory->n_folders += kind == FS_DIRECTORY;
    }
    *index = nodes->count++;
    return 0;
}

int fs_nodes_set_target(struct fs_nodes *nodes, fs_node_index link, const char *target)
{
    const char *copy = copy_text(nodes, target);

    if (!copy)
        return -ENOMEM;
    nodes->list[link].target = copy;
    return 0;
}

static int compare_names(const void *a, const void *b, void *argument)
{
    const struct fs_node *list = argument;

    return strcmp(list[*(const fs_node_index *)a].name, list[*(const fs_node_index *)b].name);
}

/* Return the index of the first child whose name does not follow its predecessor's. */
static uint32_t find_disorder(struct fs_nodes *nodes, const struct fs_node *directory)
{
    const fs_node_index *children = nodes->children + directory->first_child;
    uint32_t i = 1;

    while (i < directory->n_children &&
           compare_names(&children[i - 1], &children[i], nodes->list) < 0)
        i++;
    return i;
}

/* Sort the children of a directory by name, unless they are in order already. */
static int sort_children(struct fs_nodes *nodes, const struct fs_node *directory,
                         fs_node_index twins[2])
{
    fs_node_index *children = nodes->children + directory->first_child;
    uint32_t i = find_disorder(nodes, directory);

    if (i >= directory->n_children)
        return 0;
    qsort_r(children, directory->n_children, sizeof *children, compare_names, nodes->list);
    i = find_disorder(nodes, directory);
    if (i >= directory->n_children)
        return 0;
    twins[0] = children[i - 1];
    twins[1] = children[i];
    return -EEXIST;
}

int fs_nodes_seal(struct fs_nodes *nodes, fs_node_index twins[2])
{
    uint32_t n_placed = 0;
    int result = 0;

    nodes->children = calloc(nodes->count, sizeof *nodes->children);
    if (!nodes->children)
        return -ENOMEM;
    for (uint32_t i = 0; i < nodes->count; i++) {
        struct fs_node *node = &nodes->list[i];

        if (fs_node_is_directory(node)) {
            node->first_child = n_placed;
            n_placed += node->n_children;
            node->n_children = 0; /* counted again below */
        }
    }
    for (uint32_t i = 1; i < nodes->count; i++) {
        struct fs_node *parent = &nodes->list[nodes->list[i].parent];

        nodes->children[parent->first_child + parent->n_children++] = i;
    }
    for (uint32_t i = 0; result == 0 && i < nodes->count; i++) {
        if (fs_node_is_directory(&nodes->list[i]))
            result = sort_children(nodes, &nodes->list[i], twins);
    }
    return result;
}

fs_node_index fs_nodes_find(const struct fs_nodes *nodes, fs_node_index directory, const char *name)
{
    const struct fs_node *node = &nodes->list[directory];
    const fs_node_index *children;
    uint32_t low = 0, high = node->n_children;

    if (!fs_node_is_directory(node))
        return FS_NO_NODE;
    children = nodes->children + node->first_child;
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
