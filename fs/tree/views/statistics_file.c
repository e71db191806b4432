#include "fs/tree/views/view_files.h"

#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int fs_statistics_file_size(const struct fs_tree *tree, const struct fs_node *node,
                            uint64_t *size_bytes)
{
    const struct fs_statistics none = {0};
    struct fs_sink sink = fs_sink_that_counts();

    node->view->write_statistics(tree, node->subject, &none, &sink);
    *size_bytes = sink.position;
    return 0;
}

int fs_statistics_file_build(const struct fs_tree *tree, const struct fs_node *node,
                             const struct fs_interrupt *interrupt, struct fs_image *image)
{
    struct fs_sink sink = {0};
    struct fs_statistics statistics;
    int result =
        fs_statistics_cache_get(tree->facts->statistics, node->subject, interrupt, &statistics);

    if (result < 0)
        return result;
    fs_statistics_file_size(tree, node, &sink.to);
    sink.out = malloc(sink.to);
    if (!sink.out)
        return -ENOMEM;
    node->view->write_statistics(tree, node->subject, &statistics, &sink);
    assert(sink.position == sink.to);
    return fs_image_add_made(image, sink.out, sink.to);
}
