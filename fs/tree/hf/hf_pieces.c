#include "fs/tree/hf/hf_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The slowest axis elsewhere comes first. */
static int compare_axes(const void *a, const void *b)
{
    const struct gguf_order_axis *first = a, *second = b;

    return (first->there < second->there) - (first->there > second->there);
}

/* Sort the axes by their strides elsewhere, and leave out axes of one element. */
static void sort_axes(struct gguf_order_segment *segment)
{
    unsigned n = 0;

    for (unsigned i = 0; i < segment->n_axes; i++) {
        if (segment->axes[i].size != 1)
            segment->axes[n++] = segment->axes[i];
    }
    segment->n_axes = n;
    qsort(segment->axes, n, sizeof *segment->axes, compare_axes);
}

/* Sort the segments by their first element elsewhere. */
static int compare_segments(const void *a, const void *b)
{
    const struct gguf_order_segment *first = a, *second = b;

    return (first->there > second->there) - (first->there < second->there);
}

static bool has_same_axes(const struct gguf_order_segment *a, const struct gguf_order_segment *b)
{
    bool is_same = a->n_axes == b->n_axes;

    for (unsigned i = 0; is_same && i < a->n_axes; i++)
        is_same = a->axes[i].size == b->axes[i].size && a->axes[i].here == b->axes[i].here &&
                  a->axes[i].there == b->axes[i].there;
    return is_same;
}

/* Return the size of the slowest axis if all segments share it: then it divides them into pieces.
 */
static uint64_t outer_size(const struct gguf_placement *placement)
{
    const struct gguf_order_segment *first = &placement->segments[0];

    for (unsigned i = 0; i < placement->n_segments; i++) {
        const struct gguf_order_segment *segment = &placement->segments[i];

        if (segment->n_axes == 0 || first->n_axes == 0 ||
            segment->axes[0].size != first->axes[0].size ||
            segment->axes[0].there != first->axes[0].there)
            return 1;
    }
    return first->axes[0].size;
}

static void add_dim(struct fs_arrangement *piece, uint64_t size, uint64_t stride)
{
    piece->size[piece->n_dims] = size;
    piece->stride[piece->n_dims++] = stride;
}

/* Two segments of two tensors with the same axes are one array, in which an index is the tensor's.
 */
static void interleave(const struct gguf_placement *placement, struct fs_arrangement *piece)
{
    const struct gguf_order_segment *segment = &placement->segments[0];
    const uint64_t apart = placement->segments[1].there - segment->there;
    unsigned i = 0;

    for (; i < segment->n_axes && segment->axes[i].there > apart; i++)
        add_dim(piece, segment->axes[i].size, segment->axes[i].here);
    piece->which_dim = piece->n_dims;
    add_dim(piece, 2, 0);
    for (; i < segment->n_axes; i++)
        add_dim(piece, segment->axes[i].size, segment->axes[i].here);
}

int fs_hf_arrange(enum gguf_order order, const struct gguf_order_sizes *sizes,
                  const struct fs_hf_part parts[2], uint64_t index, struct fs_hf_arranged *out)
{
    const struct gguf_order_shape here[2] = {parts[0].shape, parts[1].shape};
    const bool is_joined = gguf_order_joins(order);
    struct gguf_placement placement;
    const struct gguf_order_segment *segment;
    const struct fs_hf_part *part;
    uint64_t n_outer;
    bool is_divided;

    if (gguf_order_from_here(order, sizes, here, &placement) < 0)
        return -EINVAL;
    for (unsigned i = 0; i < placement.n_segments; i++)
        sort_axes(&placement.segments[i]);
    qsort(placement.segments, placement.n_segments, sizeof *placement.segments, compare_segments);
    *out = (struct fs_hf_arranged){.n_dims = placement.there.n_dims, .n_pieces = 1};
    memcpy(out->shape, placement.there.size, out->n_dims * sizeof *out->shape);
    if (is_joined && placement.n_segments == 2 &&
        has_same_axes(&placement.segments[0], &placement.segments[1])) {
        out->piece.tensors[0] = parts[0].tensor;
        out->piece.tensors[1] = parts[1].tensor;
        out->piece.first[0] = parts[0].first;
        out->piece.first[1] = parts[1].first;
        interleave(&placement, &out->piece);
        return 0;
    }
    is_divided = placement.n_segments > 1 && outer_size(&placement) > 1;
    n_outer = is_divided ? outer_size(&placement) : 1;
    out->n_pieces = n_outer * placement.n_segments;
    segment = &placement.segments[index % placement.n_segments];
    part = &parts[segment->tensor];
    out->piece.tensors[0] = part->tensor;
    out->piece.first[0] = part->first + segment->here;
    if (is_divided)
        out->piece.first[0] += index / placement.n_segments * segment->axes[0].here;
    for (unsigned i = is_divided; i < segment->n_axes; i++)
        add_dim(&out->piece, segment->axes[i].size, segment->axes[i].here);
    return 0;
}
