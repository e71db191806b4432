/* Reads whole files of a tree. A function that cannot do its task fails the test. */
#pragma once

#include "fs/tree/tree.h"

struct tree_file {
    char *bytes; /* the caller frees them; a NUL follows, which size_bytes does not count */
    size_t size_bytes;
};

/* Make the tree of a model. */
struct fs_tree *tree_file_make_tree(const struct gguf_model *model);

/* Return the node at a path like "tensors/a/raw", or FS_NO_NODE. Does not follow links. */
fs_node_index tree_file_find(const struct fs_tree *tree, const char *path);

/* Read a file at once and in parts, and check that both agree with each other and with its size. */
struct tree_file tree_file_read_node(struct fs_tree *tree, fs_node_index index);
struct tree_file tree_file_read(struct fs_tree *tree, const char *path);

/* Check that a file contains `text`. */
void tree_file_expect(struct fs_tree *tree, const char *path, const char *text);

/* Check that n_slices reads of parts of a file return the same bytes as one read of the whole. */
void tree_file_expect_slices(struct fs_tree *tree, const char *path, size_t n_slices);

/*
 * Parse a file as JSON. cJSON refuses lone surrogates, which stand for bytes that are not UTF-8;
 * they become the characters U+0080 to U+00FF. Free the result with cJSON_Delete().
 */
struct cJSON;
struct cJSON *tree_file_parse(const struct tree_file *file);
