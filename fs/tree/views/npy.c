#include "fs/tree/views/view_files.h"

#include "fs/tree/output/value_writer.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/core/text.h"

#include <errno.h>

/* Data start at a multiple of this, as in the files of numpy.save(). */
#define ALIGNMENT 64u

/* The longest description has eight dimensions of twenty digits. */
#define DESCRIPTION_BYTES 320

static const struct dequant_type *type_of(const struct fs_node *node)
{
    return dequant_type_by_id(node->view->element_type);
}

static void write_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct fs_node *node = subject;
    uint64_t shape[GGUF_MAX_DIMS];
    const uint32_t n_dims = fs_tensor_shape(tree, node->subject, shape);
    static const char magic[] = "\x93NUMPY\x01"; /* version 1.0: its NUL is the 0 */
    char text[DESCRIPTION_BYTES + ALIGNMENT];
    struct fs_sink description = {.to = DESCRIPTION_BYTES, .out = text};
    const size_t prefix_bytes = sizeof magic + sizeof(uint16_t);

    fs_sink_print(&description, "{'descr': '<f%u', 'fortran_order': False, 'shape': (",
                  (unsigned)type_of(node)->block_bytes);
    for (uint32_t i = 0; i < n_dims; i++) {
        fs_sink_unsigned(&description, shape[i]);
        /* A tuple of one needs its comma. */
        fs_sink_literal(&description, i + 1 < n_dims ? ", " : n_dims == 1 ? "," : "");
    }
    fs_sink_literal(&description, "), }");
    description.to = sizeof text;
    while ((prefix_bytes + description.position + 1) % ALIGNMENT != 0)
        fs_sink_literal(&description, " ");
    fs_sink_literal(&description, "\n");

    fs_sink_write(sink, magic, sizeof magic);
    fs_gguf_number(sink, description.position, sizeof(uint16_t));
    fs_sink_write(sink, text, (size_t)description.position);
}

int fs_npy_size(const struct fs_tree *tree, const struct fs_node *node, uint64_t *size_bytes)
{
    uint64_t header_bytes;

    fs_text_size(write_header, tree, node, NULL, &header_bytes);
    if (gguf_elements_size(node->subject, type_of(node), size_bytes) < 0 ||
        __builtin_add_overflow(*size_bytes, header_bytes, size_bytes))
        return -EOVERFLOW;
    return 0;
}

int fs_npy_build(const struct fs_tree *tree, const struct fs_node *node,
                 const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const int result = fs_image_add_text(image, write_header, tree, node, interrupt);

    return result < 0 ? result : fs_image_add_elements(image, node->subject, type_of(node));
}
