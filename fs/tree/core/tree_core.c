#include "fs/tree/core/tree_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void fs_tree_end(struct fs_tree *tree)
{
    fs_open_images_end(&tree->images);
    fs_nodes_free(&tree->nodes);
}

void fs_node_path(const struct fs_tree *tree, fs_node_index node, char path[FS_PATH_BYTES])
{
    size_t length;

    path[0] = '\0';
    if (node == FS_ROOT)
        return;
    fs_node_path(tree, fs_tree_node(tree, node)->parent, path);
    length = strlen(path);
    snprintf(path + length, FS_PATH_BYTES - length, "%s%s", length > 0 ? "/" : "",
             fs_tree_node(tree, node)->name);
}

/* As many links as Linux follows in a path. */
#define MAX_LINKS 40

/* Follow a path from `node`; *n_links counts the links on the way. */
static int walk_path(const struct fs_tree *tree, fs_node_index *node, const char *path,
                     unsigned *n_links)
{
    char name[FS_NAME_BYTES];

    while (*path != '\0') {
        const size_t length = strcspn(path, "/");
        fs_node_index next = *node;

        if (length > 0 && fs_tree_node(tree, *node)->kind != FS_DIRECTORY)
            return -ENOTDIR;
        if (length >= sizeof name)
            return -ENOENT;
        memcpy(name, path, length);
        name[length] = '\0';
        path += length;
        path += strspn(path, "/");
        if (strcmp(name, "..") == 0)
            next = *node == FS_ROOT ? FS_ROOT : fs_tree_node(tree, *node)->parent;
        else if (length > 0 && strcmp(name, ".") != 0)
            next = fs_nodes_find(&tree->nodes, *node, name);
        if (next == FS_NO_NODE)
            return -ENOENT;
        if (fs_tree_node(tree, next)->kind == FS_LINK) {
            int result;

            if (++*n_links > MAX_LINKS)
                return -ELOOP;
            result = walk_path(tree, node, fs_tree_node(tree, next)->target, n_links);
            if (result < 0)
                return result;
        } else {
            *node = next;
        }
    }
    return 0;
}

int fs_tree_find(const struct fs_tree *tree, const char *path, fs_node_index *node)
{
    unsigned n_links = 0;

    *node = FS_ROOT;
    return walk_path(tree, node, path, &n_links);
}

int fs_tree_follow(const struct fs_tree *tree, fs_node_index link, fs_node_index *node)
{
    unsigned n_links = 1;

    *node = fs_tree_node(tree, link)->parent;
    return walk_path(tree, node, fs_tree_node(tree, link)->target, &n_links);
}

static int build_image(void *user, fs_node_index index, const struct fs_interrupt *interrupt,
                       struct fs_image *image)
{
    const struct fs_tree *tree = user;
    const struct fs_node *node = fs_tree_node(tree, index);

    fs_image_begin(image, tree->model);
    image->tree = tree;
    if (node->view->write)
        return fs_image_add_text(image, node->view->write, tree, node->subject, interrupt);
    return node->view->build(tree, node, interrupt, image);
}

int fs_tree_open(struct fs_tree *tree, fs_node_index node, const struct fs_interrupt *interrupt,
                 const struct fs_image **image)
{
    if (fs_tree_node(tree, node)->kind == FS_DIRECTORY)
        return -EISDIR;
    if (fs_tree_node(tree, node)->kind != FS_FILE)
        return -EINVAL;
    return fs_open_images_get(&tree->images, node, build_image, tree, interrupt, image);
}

void fs_tree_close(struct fs_tree *tree, const struct fs_image *image)
{
    fs_open_images_put(&tree->images, image);
}

/* Find the size of a file whose size is not known yet. */
static int find_size(struct fs_tree *tree, fs_node_index index,
                     const struct fs_interrupt *interrupt, uint64_t *size_bytes)
{
    const struct fs_node *node = fs_tree_node(tree, index);
    const struct fs_image *image;
    int result;

    if (node->view->size)
        return node->view->size(tree, node, size_bytes);
    if (node->view->write)
        return fs_text_size(node->view->write, tree, node->subject, interrupt, size_bytes);
    result = fs_tree_open(tree, index, interrupt, &image);
    if (result < 0)
        return result;
    *size_bytes = image->size_bytes;
    fs_tree_close(tree, image);
    return 0;
}

int fs_tree_size(struct fs_tree *tree, fs_node_index index, const struct fs_interrupt *interrupt,
                 uint64_t *size_bytes)
{
    struct fs_node *node = &tree->nodes.list[index];
    int result;

    if (node->kind != FS_FILE) {
        *size_bytes = node->kind == FS_LINK ? strlen(node->target) : 0;
        return 0;
    }
    *size_bytes = atomic_load_explicit(&node->size_bytes, memory_order_relaxed);
    if (*size_bytes != FS_SIZE_UNKNOWN)
        return 0;
    result = find_size(tree, index, interrupt, size_bytes);
    /* Several threads may do this; all find the same. */
    if (result == 0)
        atomic_store_explicit(&node->size_bytes, *size_bytes, memory_order_relaxed);
    return result;
}
