#include "fs/command/copy_file.h"

#include "fs/tree/in_order.h"

#include <errno.h>
#include <stdlib.h>

/* Large enough that a chunk costs more than handing it to a thread. */
#define CHUNK_BYTES ((size_t)1 << 20)

struct chunk {
    char *bytes;
    ssize_t n_bytes; /* or a negative errno */
};

struct copy {
    const struct fs_image *image;
    fs_chunk_receiver *receive;
    void *user;
    struct chunk *chunks; /* one for each slot */
};

/* Read a whole chunk, or up to the end of the image. */
static void read_chunk(void *user, uint64_t i, size_t slot)
{
    const struct copy *copy = user;
    struct chunk *chunk = &copy->chunks[slot];
    const uint64_t left = copy->image->size_bytes - i * CHUNK_BYTES;
    const size_t wanted = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;

    chunk->n_bytes = fs_image_read(copy->image, i * CHUNK_BYTES, wanted, chunk->bytes);
    if (chunk->n_bytes >= 0 && (size_t)chunk->n_bytes < wanted)
        chunk->n_bytes = -EIO;
}

static int pass_chunk(void *user, uint64_t i, size_t slot)
{
    const struct copy *copy = user;
    const struct chunk *chunk = &copy->chunks[slot];

    if (chunk->n_bytes < 0)
        return (int)chunk->n_bytes;
    return copy->receive(copy->user, i * CHUNK_BYTES, chunk->bytes, (size_t)chunk->n_bytes);
}

int fs_copy_file(const struct fs_image *image, fs_chunk_receiver *receive, void *user)
{
    const uint64_t n_chunks =
        image->size_bytes / CHUNK_BYTES + (image->size_bytes % CHUNK_BYTES > 0);
    const size_t n_slots = fs_in_order_slots(n_chunks);
    const size_t slot_bytes =
        image->size_bytes < CHUNK_BYTES ? (size_t)image->size_bytes : CHUNK_BYTES;
    struct copy copy = {.image = image, .receive = receive, .user = user};
    char *bytes = malloc(n_slots * slot_bytes + 1);
    int result = -ENOMEM;

    copy.chunks = calloc(n_slots + 1, sizeof *copy.chunks);
    if (bytes && copy.chunks) {
        for (size_t i = 0; i < n_slots; i++)
            copy.chunks[i].bytes = bytes + i * slot_bytes;
        result = fs_in_order(&(struct fs_ordered_work){
            .user = &copy,
            .n_items = n_chunks,
            .n_slots = n_slots,
            .compute = read_chunk,
            .finish = pass_chunk,
        });
    }
    free(copy.chunks);
    free(bytes);
    return result;
}
