#include "fs/tree/data/tensor_segments.h"

#include <errno.h>

static const struct gguf_file *file_of(const struct fs_image *image,
                                       const struct gguf_tensor *tensor)
{
    return tensor ? &image->model->files[tensor->file_index] : NULL;
}

int fs_image_add_data(struct fs_image *image, const struct gguf_tensor *tensor)
{
    return fs_image_add_source(image, file_of(image, tensor), tensor->file_offset,
                               tensor->size_bytes);
}

/* ---- elements in the order of the file: the tensor and the type ---- */

static int read_elements(const struct fs_image *image, const struct fs_segment *segment,
                         uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                         char *out)
{
    return gguf_elements_read(&(struct gguf_elements){.model = image->model,
                                                      .tensor = segment->both[0],
                                                      .type = segment->both[1]},
                              offset, length, out);
}

static const struct gguf_file *file_of_elements(const struct fs_image *image,
                                                const struct fs_segment *segment, unsigned index)
{
    return index == 0 ? file_of(image, segment->both[0]) : NULL;
}

int fs_image_add_elements(struct fs_image *image, const struct gguf_tensor *tensor,
                          const struct dequant_type *type)
{
    static const struct fs_segment_ops ops = {.read = read_elements, .source = file_of_elements};
    uint64_t size_bytes;

    if (gguf_elements_size(tensor, type, &size_bytes) < 0)
        return -EOVERFLOW;
    if (gguf_elements_are_stored(&(struct gguf_elements){.tensor = tensor, .type = type}))
        return fs_image_add_data(image, tensor);
    return fs_image_add(image, (struct fs_segment){.ops = &ops, .both = {tensor, type}},
                        size_bytes);
}

/* ---- elements in another order ---- */

static int read_arranged(const struct fs_image *image, const struct fs_segment *segment,
                         uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                         char *out)
{
    return fs_arranged_read(image->model, segment->of, offset, length, out);
}

static const struct gguf_file *file_of_arranged(const struct fs_image *image,
                                                const struct fs_segment *segment, unsigned index)
{
    return index < 2 ? file_of(image, fs_arranged_tensor(segment->of, index)) : NULL;
}

static void free_arranged(struct fs_segment *segment)
{
    fs_arranged_free((struct fs_arranged *)(uintptr_t)segment->of);
}

int fs_image_add_arranged(struct fs_image *image, const struct fs_arrangement *arrangement,
                          const struct dequant_type *type)
{
    static const struct fs_segment_ops ops = {
        .read = read_arranged, .free = free_arranged, .source = file_of_arranged};
    struct fs_arranged *arranged;
    uint64_t size_bytes, offset;
    int result = fs_arranged_make(arrangement, type, &arranged);

    if (result < 0)
        return result;
    size_bytes = fs_arranged_size(arranged);
    if (fs_arranged_is_stored(arranged, &offset)) {
        const struct gguf_tensor *tensor = arrangement->tensors[0];

        fs_arranged_free(arranged);
        return fs_image_add_source(image, file_of(image, tensor), tensor->file_offset + offset,
                                   size_bytes);
    }
    return fs_image_add(image, (struct fs_segment){.ops = &ops, .of = arranged}, size_bytes);
}
