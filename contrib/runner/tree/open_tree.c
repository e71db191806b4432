#include "contrib/runner/tree/open_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int run_tree_open(const char *path, struct run_tree *tree, struct run_failure *failure)
{
    int code;

    *tree = (struct run_tree){.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    if (tree->fd < 0)
        return run_fail(failure, -errno, "%s: %s", path, strerror(errno));
    code = run_metadata_open(tree->fd, &tree->metadata, failure);
    if (code == 0)
        code = run_weights_open(tree->fd, false, &tree->weights, failure);
    if (code < 0)
        run_tree_close(tree);
    return code;
}

void run_tree_close(struct run_tree *tree)
{
    run_weights_close(tree->weights);
    run_metadata_close(tree->metadata);
    if (tree->fd >= 0)
        close(tree->fd);
    *tree = (struct run_tree){.fd = -1};
}
