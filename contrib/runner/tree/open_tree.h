/* A model's tree: its metadata and its weights, from a mount of ggufs or a copy of one. */
#pragma once

#include "contrib/runner/tree/metadata.h"
#include "contrib/runner/tree/weights.h"

struct run_tree {
    int fd; /* of the directory */
    struct run_metadata *metadata;
    struct run_weights *weights;
};

void run_tree_close(struct run_tree *tree);
