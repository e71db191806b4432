#include "fs/library/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Get the tree, which the first caller makes. */
static int get_tree(struct ggufs_model *model, struct fs_tree **tree)
{
    struct gguf_report report = {0};
    int result = 0;

    *tree = atomic_load(&model->tree);
    if (*tree)
        return 0;
    pthread_mutex_lock(&model->tree_lock);
    *tree = atomic_load(&model->tree);
    if (!*tree) {
        result = fs_tree_make(model->model, &model->options.tree, tree, &report);
        atomic_store(&model->tree, *tree);
    }
    pthread_mutex_unlock(&model->tree_lock);
    return result;
}

static int get_node(struct ggufs_model *model, ggufs_node index, struct fs_tree **tree,
                    const struct fs_node **node)
{
    const int result = get_tree(model, tree);

    if (result < 0)
        return result;
    if (index >= (*tree)->nodes.count)
        return -ENOENT;
    *node = fs_tree_node(*tree, index);
    return 0;
}

int ggufs_find_node(struct ggufs_model *model, const char *path, ggufs_node *node)
{
    struct fs_tree *tree;
    const int result = get_tree(model, &tree);

    return result < 0 ? result : fs_tree_find(tree, path, node);
}

int ggufs_describe_node(struct ggufs_model *model, ggufs_node index, struct ggufs_node_info *info)
{
    const struct fs_node *node;
    struct fs_tree *tree;
    const int result = get_node(model, index, &tree, &node);

    if (result == 0)
        *info = (struct ggufs_node_info){.name = index == FS_ROOT ? "" : node->name,
                                         .target = node->kind == FS_LINK ? node->target : NULL,
                                         .kind = (enum ggufs_node_kind)node->kind,
                                         .n_children = node->n_children,
                                         .parent = index == FS_ROOT ? FS_ROOT : node->parent};
    return result;
}

int ggufs_child(struct ggufs_model *model, ggufs_node directory, uint32_t index, ggufs_node *child)
{
    const struct fs_node *node;
    struct fs_tree *tree;
    const int result = get_node(model, directory, &tree, &node);

    if (result < 0)
        return result;
    if (node->kind != FS_DIRECTORY)
        return -ENOTDIR;
    if (index >= node->n_children)
        return -ERANGE;
    *child = fs_tree_child(tree, directory, index);
    return 0;
}

/* ---- files ---- */

/* A call that ggufs_cancel() can end. */
struct call {
    struct ggufs_model *model;
    unsigned n_cancels; /* when it began */
};

static bool is_cancelled(void *user)
{
    const struct call *call = user;

    return atomic_load(&call->model->n_cancels) != call->n_cancels;
}

#define CALL(model_)                                                                               \
    &(struct fs_interrupt)                                                                         \
    {                                                                                              \
        .check = is_cancelled, .user = &(struct call)                                              \
        {                                                                                          \
            (model_), atomic_load(&(model_)->n_cancels)                                            \
        }                                                                                          \
    }

int ggufs_node_size(struct ggufs_model *model, ggufs_node index, uint64_t *size_bytes)
{
    const struct fs_node *node;
    struct fs_tree *tree;
    const locale_t before = fs_library_enter();
    int result = get_node(model, index, &tree, &node);

    if (result == 0)
        result = fs_tree_size(tree, index, NULL, size_bytes);
    uselocale(before);
    return result;
}

struct ggufs_file {
    struct ggufs_model *model;
    struct fs_tree *tree;
    const struct fs_image *image;
};

int ggufs_open_file(struct ggufs_model *model, ggufs_node index, struct ggufs_file **file)
{
    struct ggufs_file *made = calloc(1, sizeof *made);
    const locale_t before = fs_library_enter();
    const struct fs_node *node;
    int result = -ENOMEM;

    if (made) {
        made->model = model;
        result = get_node(model, index, &made->tree, &node);
    }
    if (result == 0)
        result = fs_tree_open(made->tree, index, CALL(model), &made->image);
    if (result == 0)
        *file = made;
    else
        free(made);
    uselocale(before);
    return result == -EINTR ? -ECANCELED : result;
}

void ggufs_close_file(struct ggufs_file *file)
{
    if (file)
        fs_tree_close(file->tree, file->image);
    free(file);
}

int64_t ggufs_pread(struct ggufs_file *file, void *out, size_t n_bytes, uint64_t offset)
{
    const int64_t result =
        fs_image_read_interruptible(file->image, offset, n_bytes, CALL(file->model), out);

    return result == -EINTR ? -ECANCELED : result;
}

void ggufs_cancel(struct ggufs_model *model)
{
    atomic_fetch_add(&model->n_cancels, 1);
}
