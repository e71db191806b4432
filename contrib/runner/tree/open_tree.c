#include "contrib/runner/tree/open_tree.h"

#include <unistd.h>

void run_tree_close(struct run_tree *tree)
{
    run_weights_close(tree->weights);
    run_metadata_close(tree->metadata);
    if (tree->fd >= 0)
        close(tree->fd);
    *tree = (struct run_tree){.fd = -1};
}
