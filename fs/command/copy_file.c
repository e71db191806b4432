#include "fs/command/copy_file.h"

#include "fs/tree/data/threads.h"
#include "fs/tree/views/view_files.h"

#include <errno.h>
#include <stdalign.h>

/* Large enough that a chunk costs more than handing it to a thread. */
#define CHUNK_BYTES ((size_t)1 << 20)

struct chunk {
    ssize_t n_bytes; /* or a negative errno */
    alignas(FS_SLOT_ALIGNMENT) char bytes[];
};

struct copy {
    const struct fs_image *image;
    const struct fs_interrupt *interrupt;
    fs_chunk_receiver *receive;
    void *user;
};

/* Read a whole chunk, or up to the end of the image. */
static void read_chunk(void *user, uint64_t i, void *slot)
{
    const struct copy *copy = user;
    struct chunk *chunk = slot;
    const uint64_t left = copy->image->size_bytes - i * CHUNK_BYTES;
    const size_t wanted = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;

    chunk->n_bytes = fs_image_read_interruptible(copy->image, i * CHUNK_BYTES, wanted,
                                                 copy->interrupt, chunk->bytes);
    if (chunk->n_bytes >= 0 && (size_t)chunk->n_bytes < wanted)
        chunk->n_bytes = -EIO;
}

static int pass_chunk(void *user, uint64_t i, const void *slot)
{
    const struct copy *copy = user;
    const struct chunk *chunk = slot;

    if (chunk->n_bytes < 0)
        return (int)chunk->n_bytes;
    return copy->receive(copy->user, i * CHUNK_BYTES, chunk->bytes, (size_t)chunk->n_bytes);
}

int fs_copy_file(const struct fs_image *image, const struct fs_interrupt *interrupt,
                 fs_chunk_receiver *receive, void *user)
{
    const uint64_t n_chunks =
        image->size_bytes / CHUNK_BYTES + (image->size_bytes % CHUNK_BYTES > 0);
    const size_t chunk_bytes =
        image->size_bytes < CHUNK_BYTES ? (size_t)image->size_bytes : CHUNK_BYTES;
    struct copy copy = {.image = image, .interrupt = interrupt, .receive = receive, .user = user};

    return fs_ordered_pipeline_run(&(struct fs_ordered_pipeline){
        .user = &copy,
        .n_items = n_chunks,
        .slot_bytes = sizeof(struct chunk) + chunk_bytes,
        .compute = read_chunk,
        .finish = pass_chunk,
    });
}

uint64_t fs_work_bytes(struct fs_tree *tree, fs_node_index node, uint64_t size_bytes)
{
    const struct fs_view *view = fs_tree_node(tree, node)->view;
    uint64_t sum = size_bytes, more_bytes;

    if (!view || view->build != fs_checksums_build)
        return sum;
    for (fs_node_index i = 0; i < tree->nodes.count; i++) {
        view = fs_tree_node(tree, i)->view;
        if (view && view->is_summed && fs_tree_size(tree, i, NULL, &more_bytes) == 0)
            sum += more_bytes;
    }
    return sum;
}
