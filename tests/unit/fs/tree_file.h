/* Files of a tree, read as a whole. What can't be done fails the test. */
#ifndef GGUFS_TESTS_TREE_FILE_H
#define GGUFS_TESTS_TREE_FILE_H

#include "fs/tree/tree.h"

struct tree_file {
    char *bytes; /* to be freed; a NUL follows that does not count */
    size_t size_bytes;
};

/* Make the tree of a model, which must succeed. */
struct fs_tree *tree_file_make_tree(const struct gguf_model *model);

/* Return the node at a path like "tensors/a/raw", or FS_NO_NODE. Does not follow links. */
fs_node_index tree_file_find(const struct fs_tree *tree, const char *path);

/* Reads a file at once and in parts, which must give the same, and as much as its size says. */
struct tree_file tree_file_read_node(struct fs_tree *tree, fs_node_index index);
struct tree_file tree_file_read(struct fs_tree *tree, const char *path);

/* Reads a file, which must hold `text`. */
void tree_file_expect(struct fs_tree *tree, const char *path, const char *text);

/*
 * Parses JSON of which bytes that are no UTF-8, which are lone surrogates there, become the
 * characters U+0080 to U+00FF, for cJSON takes no lone surrogates. To be freed with cJSON_Delete().
 */
struct cJSON;
struct cJSON *tree_file_parse(const struct tree_file *file);

#endif
