/* A model's tree: its metadata and its weights, from a mount of ggufs or a copy of one. */
#pragma once

#include "contrib/runner/tree/metadata.h"
#include "contrib/runner/tree/weights.h"

struct run_tree {
    int fd; /* of the directory */
    struct run_metadata *metadata;
    struct run_weights *weights;
};

/* Open the tree at `path`. On failure nothing is left open. */
int run_tree_open(const char *path, struct run_tree *tree, struct run_failure *failure);
void run_tree_close(struct run_tree *tree);
