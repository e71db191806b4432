#include "fs/tree/views/statistics_file.h"

#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

uint64_t fs_statistics_file_size(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                                 fs_statistics_writer *write)
{
    const struct fs_statistics none = {0};
    struct fs_sink sink = fs_sink_that_counts();

    write(tree, tensor, &none, &sink);
    return sink.position;
}

int fs_statistics_file_build(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                             fs_statistics_writer *write, const struct fs_interrupt *interrupt,
                             struct fs_image *image)
{
    const uint64_t size_bytes = fs_statistics_file_size(tree, tensor, write);
    struct fs_sink sink = {.to = size_bytes};
    struct fs_statistics statistics;
    int result = fs_statistics_cache_get(tree->facts->statistics, tensor, interrupt, &statistics);

    if (result < 0)
        return result;
    sink.out = malloc(size_bytes);
    if (!sink.out)
        return -ENOMEM;
    write(tree, tensor, &statistics, &sink);
    assert(sink.position == size_bytes);
    return fs_image_add_made(image, sink.out, size_bytes);
}
