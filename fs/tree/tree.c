#include "fs/tree/tree.h"

#include "fs/tree/hf/hf_checkpoint.h"
#include "fs/tree/layout.h"
#include "fs/tree/model_gguf.h"
#include "fs/tree/paths.h"
#include "fs/tree/views.h"
#include "gguf/vocabulary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fs_findings_add(void *findings, const struct gguf_finding *finding)
{
    struct fs_findings *all = findings;

    if (all->n_findings++ == 0)
        snprintf(all->first, sizeof all->first, "%s", finding->message);
}

static int fail(const struct fs_tree *tree, int code, const fs_node_index twins[2],
                struct gguf_report *report)
{
    const struct fs_node *first = fs_tree_node(tree, twins[0]);
    const struct fs_node *second = fs_tree_node(tree, twins[1]);
    const struct fs_subjects *subjects;

    if (code != -EEXIST)
        return gguf_error(report, GGUF_RULE_MEMORY, code, GGUF_NO_PLACE, "cannot make the tree: %s",
                          strerror(-code));
    subjects = first->view && second->view ? fs_path_subjects(first->view->path) : NULL;
    if (!subjects || !subjects->name || fs_path_subjects(second->view->path) != subjects)
        return gguf_error(report, GGUF_RULE_FILE_NAMES, code, GGUF_NO_PLACE,
                          "two files of the tree are called %s",
                          gguf_quote((struct gguf_string){first->name, strlen(first->name)}).text);
    return gguf_error(report, GGUF_RULE_FILE_NAMES, code, GGUF_NO_PLACE,
                      "the names %s and %s give the same file name",
                      gguf_quote(subjects->name(first->subject)).text,
                      gguf_quote(subjects->name(second->subject)).text);
}

static int plan_split(struct fs_tree *tree, uint64_t split_bytes, struct gguf_report *report)
{
    const char *obstacle = fs_model_gguf_obstacle(tree->model);
    int result;

    if (obstacle)
        return gguf_error(report, GGUF_RULE_SPLIT, -EINVAL, GGUF_NO_PLACE, "cannot be split: %s",
                          obstacle);
    result = fs_split_plan(tree->model, tree->export.choice, split_bytes, &tree->shards,
                           &tree->n_shards);
    if (result == -E2BIG)
        gguf_error(report, GGUF_RULE_SPLIT, result, GGUF_NO_PLACE,
                   "cannot be split into files of %" PRIu64 " bytes: there would be over %u",
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
        return gguf_system_error(report, -ENOMEM, GGUF_NO_PLACE);
    made->model = model;
    made->dtype = options ? options->dtype : FS_DTYPE_STORED;
    fs_export_plan(model, options ? options->export : FS_EXPORT_LOADABLE, &made->export);
    fs_open_images_begin(&made->images);
    gguf_check_vocabulary(model, report);
    made->statistics = fs_kept_statistics_make(model);
    result = made->statistics ? gguf_find_orig_shapes(model, &made->shapes, report) : -ENOMEM;
    if (result == 0)
        result = fs_tensor_pairs_make(model, &made->pairs);
    if (result == 0)
        result = fs_vocabulary_make(model, &made->vocabulary);
    if (result == 0 && options && options->split_bytes > 0)
        result = plan_split(made, options->split_bytes, report);
    if (result == 0)
        result = fs_hf_make(made, options ? options->hf_shard_bytes : 0);
    if (result == 0)
        result = fs_layout_add_nodes(made);
    if (result == 0)
        result = fs_nodes_seal(&made->nodes, twins);
    if (result < 0) {
        if (report->n_errors == 0)
            fail(made, result, twins, report);
        fs_tree_free(made);
        return result;
    }
    if (options && options->findings)
        made->findings = *options->findings;
    *tree = made;
    return 0;
}

void fs_tree_free(struct fs_tree *tree)
{
    if (!tree)
        return;
    fs_open_images_end(&tree->images);
    fs_nodes_free(&tree->nodes);
    fs_kept_statistics_free(tree->statistics);
    free(tree->shards);
    fs_vocabulary_free(tree->vocabulary);
    free(tree->shapes);
    free(tree->pairs);
    fs_hf_free(tree->hf);
    free(tree);
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
    if (node->view->write)
        return fs_image_add_text(image, node->view->write, tree, node->subject, interrupt);
    return node->view->build(tree, node->subject, interrupt, image);
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
        return node->view->size(tree, node->subject, size_bytes);
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
