#include "fs/tree/views/npy.h"

#include "fs/tree/output/gguf_bytes.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/core/text.h"

#include <errno.h>

/* Data start at a multiple of this, as in the files of numpy.save(). */
#define ALIGNMENT 64u

/* The longest description has eight dimensions of twenty digits. */
#define DESCRIPTION_BYTES 320

void fs_npy_header_write(struct fs_sink *sink, const char *descr, const uint64_t *shape,
                         uint32_t n_dims)
{
    static const char magic[] = "\x93NUMPY\x01"; /* version 1.0: its NUL is the 0 */
    char text[DESCRIPTION_BYTES + ALIGNMENT];
    struct fs_sink description = {.to = DESCRIPTION_BYTES, .out = text};
    const size_t prefix_bytes = sizeof magic + sizeof(uint16_t);

    fs_sink_print(&description, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
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

static void write_header(const struct fs_tree *tree, const void *subject, const char *descr,
                         struct fs_sink *sink)
{
    uint64_t shape[GGUF_MAX_DIMS];
    const uint32_t n_dims = fs_tensor_shape(tree, subject, shape);

    fs_npy_header_write(sink, descr, shape, n_dims);
}

static void write_f32_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    write_header(tree, subject, "<f4", sink);
}

static void write_f16_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    write_header(tree, subject, "<f2", sink);
}

static int get_size(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                    fs_text_writer *write, uint32_t type_id, uint64_t *size_bytes)
{
    uint64_t header_bytes;

    fs_text_size(write, tree, tensor, NULL, &header_bytes);
    if (fs_elements_size(tensor, dequant_type_by_id(type_id), size_bytes) < 0 ||
        __builtin_add_overflow(*size_bytes, header_bytes, size_bytes))
        return -EOVERFLOW;
    return 0;
}

static int build(const struct fs_tree *tree, const struct gguf_tensor *tensor,
                 fs_text_writer *write, uint32_t type_id, const struct fs_interrupt *interrupt,
                 struct fs_image *image)
{
    const int result = fs_image_add_text(image, write, tree, tensor, interrupt);

    return result < 0 ? result : fs_image_add_elements(image, tensor, dequant_type_by_id(type_id));
}

int fs_npy_f32_size(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes)
{
    return get_size(tree, subject, write_f32_header, DEQUANT_F32, size_bytes);
}

int fs_npy_f32_build(const struct fs_tree *tree, const void *subject,
                     const struct fs_interrupt *interrupt, struct fs_image *image)
{
    return build(tree, subject, write_f32_header, DEQUANT_F32, interrupt, image);
}

int fs_npy_f16_size(const struct fs_tree *tree, const void *subject, uint64_t *size_bytes)
{
    return get_size(tree, subject, write_f16_header, DEQUANT_F16, size_bytes);
}

int fs_npy_f16_build(const struct fs_tree *tree, const void *subject,
                     const struct fs_interrupt *interrupt, struct fs_image *image)
{
    return build(tree, subject, write_f16_header, DEQUANT_F16, interrupt, image);
}
