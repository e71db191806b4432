#include "fs/tree/views/view_files.h"

#include "fs/tree/data/safetensors_header.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <errno.h>
#include <string.h>
#include <unistr.h>

/*
 * Return the type of the numbers that are served: integers as they are stored, and float64 unless
 * the user wants another type. GGUF and safetensors use the same names for these types. The
 * tensor's type must have a decoder.
 */
static const struct dequant_type *served_type(const struct fs_tree *tree,
                                              const struct gguf_tensor *tensor)
{
    switch (tensor->type->id) {
    case DEQUANT_I8:
    case DEQUANT_I16:
    case DEQUANT_I32:
    case DEQUANT_I64:
        return tensor->type;
    case DEQUANT_F64:
        return tree->facts->dtype == FS_DTYPE_STORED ? tensor->type : fs_dtype_of(tree, tensor);
    default:
        return fs_dtype_of(tree, tensor);
    }
}

/*
 * Readers map the file, so all numbers must lie at multiples of their size: tensors are ordered by
 * that, the widest first.
 */
static const size_t widths[] = {8, 4, 2, 1};

#define N_WIDTHS (sizeof widths / sizeof *widths)

/*
 * The list goes through all tensors once per width. Set *tensor to the one at this place, or to
 * NULL if it has another width. Returns 0 at the end.
 */
static int get_tensor(const struct fs_tree *tree, uint64_t index, const struct gguf_tensor **tensor)
{
    const uint64_t n_tensors = tree->model->n_tensors;

    if (n_tensors == 0 || index / n_tensors >= N_WIDTHS)
        return 0;
    *tensor = &tree->model->tensors[index % n_tensors];
    if (served_type(tree, *tensor)->block_bytes != widths[index / n_tensors])
        *tensor = NULL;
    return 1;
}

static int get_entry(const struct fs_tree *tree, const void *subject, uint64_t index,
                     struct fs_safetensor *entry)
{
    const struct gguf_tensor *tensor;

    *entry = (struct fs_safetensor){0};
    if (!get_tensor(tree, index, &tensor))
        return 0;
    if (!tensor)
        return 1;
    entry->name = gguf_name_of(tensor);
    entry->dtype = served_type(tree, tensor)->name;
    entry->n_dims = fs_tensor_shape(tree, tensor, entry->shape);
    return gguf_elements_size(tensor, served_type(tree, tensor), &entry->size_bytes) < 0
               ? -EOVERFLOW
               : 1;
}

static void write_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    fs_safetensors_write(get_entry, tree, subject, sink);
}

/* Return true if the header of a model with many or long names is too long. */
static bool is_header_too_long(const struct fs_tree *tree)
{
    /* Six bytes for an escaped one, and the numbers of an entry. */
    const uint64_t most_bytes = 6 * tree->model->names_bytes + 320 * tree->model->n_tensors;
    uint64_t n_bytes;

    if (most_bytes <= FS_SAFETENSORS_MAX_HEADER_BYTES - 64)
        return false;
    fs_text_size(write_header, tree, NULL, NULL, &n_bytes);
    return n_bytes + 7 > FS_SAFETENSORS_MAX_HEADER_BYTES;
}

const char *fs_safetensors_obstacle(const struct fs_tree *tree)
{
    uint64_t n_bytes = 0;

    for (uint64_t i = 0; i < tree->model->n_tensors; i++) {
        const struct gguf_tensor *tensor = &tree->model->tensors[i];
        const struct gguf_string name = gguf_name_of(tensor);
        uint64_t size_bytes;

        if (!tensor->type || !dequant_is_decodable(tensor->type))
            return "it has tensors that cannot be decoded";
        if (u8_check((const uint8_t *)name.data, name.length_bytes) ||
            gguf_string_equals(name, "__metadata__"))
            return "it has tensor names that safetensors files do not allow";
        if (gguf_elements_size(tensor, served_type(tree, tensor), &size_bytes) < 0 ||
            __builtin_add_overflow(n_bytes, size_bytes, &n_bytes) || n_bytes > INT64_MAX / 2)
            return "its tensors are too large";
    }
    if (is_header_too_long(tree))
        return "its header would be longer than 100 MB";
    return NULL;
}

bool fs_safetensors_applies(const struct fs_tree *tree, const void *subject)
{
    return !fs_safetensors_obstacle(tree);
}

int fs_safetensors_build(const struct fs_tree *tree, const struct fs_node *node,
                         const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct gguf_tensor *tensor;
    int result = fs_safetensors_add_header(image, write_header, tree, node->subject, interrupt);

    for (uint64_t i = 0; result == 0 && get_tensor(tree, i, &tensor); i++) {
        if (tensor)
            result = fs_image_add_elements(image, tensor, served_type(tree, tensor));
    }
    return result;
}
