#include "fs/tree/views/importance.h"

#include "gguf/elements.h"
#include "fs/tree/data/tensor_segments.h"
#include "fs/tree/views/view_files.h"
#include "fs/tree/facts/facts.h"
#include "fs/tree/core/tree_core.h"

#include <errno.h>
#include <string.h>

/* Columns that are computed at a time. */
#define CHUNK_ELEMENTS 1024u

bool fs_is_imatrix(const struct gguf_model *model)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        const struct fs_half half = fs_half_of(&model->tensors[i]);

        if (half.kind == FS_IMPORTANCE_PAIR && !half.is_second)
            return true;
    }
    return false;
}

bool fs_importance_fits(const struct gguf_tensor *sums, const struct gguf_tensor *counts)
{
    return sums->type && dequant_is_decodable(sums->type) && counts->type &&
           dequant_is_decodable(counts->type) && counts->n_elements > 0 &&
           sums->n_elements % counts->n_elements == 0;
}

static int read_floats(const struct gguf_model *model, const struct gguf_tensor *tensor,
                       uint64_t first, uint64_t n, float *out)
{
    return gguf_elements_read(&(struct gguf_elements){.model = model,
                                                      .tensor = tensor,
                                                      .type = dequant_type_by_id(DEQUANT_F32)},
                              first * sizeof *out, n * sizeof *out, (char *)out);
}

int fs_importance_read(const struct gguf_model *model, const struct gguf_tensor *sums,
                       const struct gguf_tensor *counts, uint64_t offset, size_t length, char *out)
{
    const uint64_t n_columns = sums->n_elements / counts->n_elements;
    float values[CHUNK_ELEMENTS], of_matrix[CHUNK_ELEMENTS];

    while (length > 0) {
        const uint64_t first = offset / sizeof *values;
        const size_t skip = (size_t)(offset % sizeof *values);
        const uint64_t wanted = (skip + length + sizeof *values - 1) / sizeof *values;
        const uint64_t n = wanted < CHUNK_ELEMENTS ? wanted : CHUNK_ELEMENTS;
        const size_t room = n * sizeof *values - skip;
        const size_t n_bytes = room < length ? room : length;
        const uint64_t matrix = first / n_columns;
        int result = read_floats(model, sums, first, n, values);

        if (result < 0)
            return result;
        result =
            read_floats(model, counts, matrix, (first + n - 1) / n_columns - matrix + 1, of_matrix);
        if (result < 0)
            return result;
        for (uint64_t i = 0; i < n; i++)
            values[i] = fs_importance(values[i], of_matrix[(first + i) / n_columns - matrix], 1);
        memcpy(out, (const char *)values + skip, n_bytes);
        out += n_bytes;
        offset += n_bytes;
        length -= n_bytes;
    }
    return 0;
}

/* ---- importance.npy ---- */

static const struct gguf_tensor *counts_of(const struct fs_tree *tree,
                                           const struct gguf_tensor *sums)
{
    return fs_other_half(tree->facts->pairs, sums);
}

bool fs_importance_applies(const struct fs_tree *tree, const void *subject)
{
    const struct gguf_tensor *sums = subject;
    const struct fs_half half = fs_half_of(sums);
    const struct gguf_tensor *counts;

    if (half.kind != FS_IMPORTANCE_PAIR || half.is_second)
        return false;
    counts = counts_of(tree, sums);
    return counts && fs_importance_fits(sums, counts);
}

static int read_segment(const struct fs_image *image, const struct fs_segment *segment,
                        uint64_t offset, size_t length, const struct fs_interrupt *interrupt,
                        char *out)
{
    (void)interrupt;
    return fs_importance_read(image->model, segment->both[0], segment->both[1], offset, length,
                              out);
}

static const struct gguf_file *file_of_segment(const struct fs_image *image,
                                               const struct fs_segment *segment, unsigned index)
{
    const struct gguf_tensor *tensor = index < 2 ? segment->both[index] : NULL;

    return tensor ? &image->model->files[tensor->file_index] : NULL;
}

static int add_importance(struct fs_image *image, const struct gguf_tensor *sums,
                          const struct gguf_tensor *counts)
{
    static const struct fs_segment_ops ops = {.read = read_segment, .source = file_of_segment};
    uint64_t size_bytes;

    if (gguf_elements_size(sums, dequant_type_by_id(DEQUANT_F32), &size_bytes) < 0)
        return -EOVERFLOW;
    return fs_image_add(image, (struct fs_segment){.ops = &ops, .both = {sums, counts}},
                        size_bytes);
}

static void write_header(const struct fs_tree *tree, const void *subject, struct fs_sink *sink)
{
    const struct gguf_tensor *sums = subject;
    const uint64_t n_matrices = counts_of(tree, sums)->n_elements;
    const uint64_t shape[] = {n_matrices, sums->n_elements / n_matrices};
    const bool is_vector = n_matrices == 1;

    fs_npy_header_write(sink, dequant_type_by_id(DEQUANT_F32), shape + is_vector,
                        is_vector ? 1 : 2);
}

int fs_importance_npy_size(const struct fs_tree *tree, const struct fs_node *node,
                           uint64_t *size_bytes)
{
    uint64_t header_bytes;

    fs_text_size(write_header, tree, node->subject, NULL, &header_bytes);
    if (gguf_elements_size(node->subject, dequant_type_by_id(DEQUANT_F32), size_bytes) < 0 ||
        __builtin_add_overflow(*size_bytes, header_bytes, size_bytes))
        return -EOVERFLOW;
    return 0;
}

int fs_importance_npy_build(const struct fs_tree *tree, const struct fs_node *node,
                            const struct fs_interrupt *interrupt, struct fs_image *image)
{
    const struct gguf_tensor *sums = node->subject;
    const int result = fs_image_add_text(image, write_header, tree, sums, interrupt);

    return result < 0 ? result : add_importance(image, sums, counts_of(tree, sums));
}
