#include "fs/tree/tree.h"

#include "fs/tree/names.h"
#include "fs/tree/split.h"
#include "fs/tree/views.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Adds the files of one model, key or tensor to a directory. */
static int add_views(struct fs_tree *tree, fs_node_index directory, enum fs_scope scope,
                     const void *subject)
{
    for (size_t i = 0; i < fs_view_count(); i++) {
        const struct fs_view *view = fs_view_at(i);
        int result;

        if (view->scope != scope || (view->applies && !view->applies(tree->model, subject)))
            continue;
        result = fs_nodes_add(&tree->nodes, directory, view->name, false, view, subject, NULL);
        if (result < 0)
            return result;
    }
    return 0;
}

static int add_keys(struct fs_tree *tree, fs_node_index directory)
{
    char file_name[FS_NAME_BYTES];

    for (size_t i = 0; i < fs_view_count(); i++) {
        const struct fs_view *view = fs_view_at(i);

        if (view->scope != FS_PER_KEY)
            continue;
        for (uint64_t j = 0; j < tree->model->n_keys; j++) {
            const struct gguf_key *key = &tree->model->keys[j];
            int result;

            fs_name_escape(key->name, view->name, file_name);
            result = fs_nodes_add(&tree->nodes, directory, file_name, true, view, key, NULL);
            if (result < 0)
                return result;
        }
    }
    return 0;
}

/* A tensor with an old name also answers to the one that GGUF files have. */
static int add_gguf_name(struct fs_tree *tree, fs_node_index directory,
                         const struct gguf_tensor *tensor, const char *file_name)
{
    char link_name[FS_NAME_BYTES];

    if (tensor->gguf_name.length_bytes == 0)
        return 0;
    fs_name_escape(tensor->gguf_name, "", link_name);
    return fs_nodes_add_link(&tree->nodes, directory, link_name, file_name, tensor);
}

static int add_tensors(struct fs_tree *tree, fs_node_index directory)
{
    char file_name[FS_NAME_BYTES];

    for (uint64_t i = 0; i < tree->model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &tree->model->tensors[i];
        fs_node_index folder = FS_NO_NODE;
        int result;

        fs_name_escape(tensor->name, "", file_name);
        result = fs_nodes_add(&tree->nodes, directory, file_name, true, NULL, tensor, &folder);
        if (result == 0)
            result = add_views(tree, folder, FS_PER_TENSOR, tensor);
        if (result == 0)
            result = add_gguf_name(tree, directory, tensor, file_name);
        if (result < 0)
            return result;
    }
    return 0;
}

static int add_shards(struct fs_tree *tree)
{
    fs_node_index directory = FS_NO_NODE;
    char file_name[FS_NAME_BYTES];
    int result = fs_nodes_add(&tree->nodes, FS_ROOT, "split", false, NULL, NULL, &directory);

    for (size_t i = 0; i < fs_view_count(); i++) {
        const struct fs_view *view = fs_view_at(i);

        if (view->scope != FS_PER_SHARD)
            continue;
        for (uint32_t j = 0; result == 0 && j < tree->n_shards; j++) {
            fs_split_name(tree->model, &tree->shards[j], view->name, file_name);
            result = fs_nodes_add(&tree->nodes, directory, file_name, true, view, &tree->shards[j],
                                  NULL);
        }
    }
    return result;
}

static int add_nodes(struct fs_tree *tree)
{
    fs_node_index metadata = FS_NO_NODE, tensors = FS_NO_NODE;
    int result = fs_nodes_begin(&tree->nodes);

    if (result == 0)
        result = add_views(tree, FS_ROOT, FS_PER_MODEL, NULL);
    if (result == 0)
        result = fs_nodes_add(&tree->nodes, FS_ROOT, "metadata", false, NULL, NULL, &metadata);
    if (result == 0)
        result = fs_nodes_add(&tree->nodes, FS_ROOT, "tensors", false, NULL, NULL, &tensors);
    if (result == 0)
        result = add_keys(tree, metadata);
    if (result == 0)
        result = add_tensors(tree, tensors);
    if (result == 0 && tree->n_shards > 0)
        result = add_shards(tree);
    return result;
}

/* The true name behind a node of metadata/ or tensors/. */
static struct gguf_string name_of(const struct fs_node *node)
{
    if (node->view)
        return ((const struct gguf_key *)node->subject)->name;
    return ((const struct gguf_tensor *)node->subject)->name;
}

static int fail(const struct fs_tree *tree, int code, const fs_node_index twins[2],
                struct gguf_report *report)
{
    const struct fs_node *list = tree->nodes.list;

    if (code != -EEXIST)
        return gguf_error(report, code, GGUF_NO_OFFSET, "can't make the tree: %s", strerror(-code));
    return gguf_error(report, code, GGUF_NO_OFFSET, "the names %s and %s give the same file name",
                      gguf_quote(name_of(&list[twins[0]])).text,
                      gguf_quote(name_of(&list[twins[1]])).text);
}

static int plan_split(struct fs_tree *tree, uint64_t split_bytes, struct gguf_report *report)
{
    const char *obstacle = fs_model_gguf_obstacle(tree->model);
    int result;

    if (obstacle)
        return gguf_error(report, -EINVAL, GGUF_NO_OFFSET, "can't be split: %s", obstacle);
    result = fs_split_plan(tree->model, split_bytes, &tree->shards, &tree->n_shards);
    if (result == -E2BIG)
        gguf_error(report, result, GGUF_NO_OFFSET,
                   "can't be split into files of %" PRIu64 " bytes: these are over %u files",
                   split_bytes, FS_MAX_SHARDS);
    return result;
}

int fs_tree_make(const struct gguf_model *model, const struct fs_tree_options *options,
                 struct fs_tree **tree, struct gguf_report *report)
{
    struct fs_tree *made = calloc(1, sizeof *made);
    fs_node_index twins[2] = {0};
    int result;

    *tree = NULL;
    if (!made)
        return gguf_error(report, -ENOMEM, GGUF_NO_OFFSET, "%s", strerror(ENOMEM));
    made->model = model;
    fs_open_images_begin(&made->images);
    result = fs_value_cache_begin(&made->values, model);
    if (result == 0 && options && options->split_bytes > 0)
        result = plan_split(made, options->split_bytes, report);
    if (result == 0)
        result = add_nodes(made);
    if (result == 0)
        result = fs_nodes_seal(&made->nodes, twins);
    if (result < 0) {
        if (report->n_errors == 0)
            fail(made, result, twins, report);
        fs_tree_free(made);
        return result;
    }
    *tree = made;
    return 0;
}

void fs_tree_free(struct fs_tree *tree)
{
    if (!tree)
        return;
    fs_open_images_end(&tree->images);
    fs_nodes_free(&tree->nodes);
    fs_value_cache_free(&tree->values);
    free(tree->shards);
    free(tree);
}

/* As many links as Linux follows. */
#define MAX_LINKS 40

/* Go from `node` along a path; *n_links counts the links that were followed. */
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

static int build_image(void *user, fs_node_index index, const struct fs_interrupt *interrupt,
                       struct fs_image *image)
{
    struct fs_tree *tree = user;
    const struct fs_node *node = fs_tree_node(tree, index);

    (void)interrupt;
    fs_image_begin(image, tree->model);
    return node->view->build(image, node->subject, &tree->values);
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

int fs_tree_size(struct fs_tree *tree, fs_node_index index, const struct fs_interrupt *interrupt,
                 uint64_t *size_bytes)
{
    struct fs_node *node = &tree->nodes.list[index];
    const struct fs_image *image;
    int result;

    *size_bytes = atomic_load_explicit(&node->size_bytes, memory_order_relaxed);
    if (*size_bytes != FS_SIZE_UNKNOWN)
        return 0;
    result = fs_tree_open(tree, index, interrupt, &image);
    if (result < 0)
        return result;
    *size_bytes = image->size_bytes;
    fs_tree_close(tree, image);
    /* Whoever comes first: all compute the same. */
    atomic_store_explicit(&node->size_bytes, *size_bytes, memory_order_relaxed);
    return 0;
}
