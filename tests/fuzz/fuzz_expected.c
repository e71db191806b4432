#include "tests/fuzz/fuzz_expected.h"

#include "dequant/kernels.h"
#include "tests/fuzz/fuzz_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *fuzz_data_of(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    char *blocks = fuzz_alloc(tensor->size_bytes);
    const struct gguf_file *file = &model->files[tensor->file_index];

    if (tensor->size_bytes > 0 && file->source.mapping)
        memcpy(blocks, file->source.mapping + tensor->file_offset, tensor->size_bytes);
    else if (tensor->size_bytes > 0)
        FUZZ_CHECK(gguf_file_read(file, tensor->file_offset, tensor->size_bytes, blocks) == 0,
                   "joined parts cannot be read");
    return blocks;
}

char *fuzz_values_of(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    const size_t n_blocks = tensor->n_elements / tensor->type->block_elements;
    float *values = fuzz_alloc(tensor->n_elements * sizeof(float));
    char *blocks = fuzz_data_of(model, tensor);

    if (tensor->big_endian && dequant_has_byte_order(tensor->type)) {
        char *swapped = fuzz_alloc(tensor->size_bytes);

        dequant_swap_blocks(tensor->type, blocks, swapped, n_blocks);
        free(blocks);
        blocks = swapped;
    }
    dequant_decode_elements(tensor->type, (struct dequant_shape){tensor->ne[0], tensor->n_elements},
                            blocks, 0, tensor->n_elements, values);
    free(blocks);
    return (char *)values;
}

char *fuzz_encoded_of(const struct gguf_model *model, const struct gguf_tensor *tensor,
                      const struct dequant_type *type)
{
    char *values = fuzz_values_of(model, tensor), *encoded;

    if (type->id == DEQUANT_F32)
        return values;
    encoded = fuzz_alloc(tensor->n_elements / type->block_elements * type->block_bytes);
    dequant_encode(type, values, encoded, tensor->n_elements);
    free(values);
    return encoded;
}

/*
 * The values rounded to a type of 16 bits; or the stored numbers if the tensor has that type, in
 * any byte order and order of rows, with the bits of each NaN.
 */
static char *rounded_of(const struct gguf_model *model, const struct gguf_tensor *tensor,
                        uint32_t type_id)
{
    const bool is_stored = tensor->type->id == type_id;
    char *data;

    if (dequant_modern(tensor->type)->id != type_id || (!is_stored && type_id != DEQUANT_BF16))
        return fuzz_encoded_of(model, tensor, dequant_type_by_id(type_id));
    if (!is_stored) { /* the upper half of each float */
        data = fuzz_values_of(model, tensor);
        for (uint64_t i = 0; i < tensor->n_elements; i++)
            memmove(data + 2 * i, data + 4 * i + 2, 2);
        return data;
    }
    data = fuzz_data_of(model, tensor);
    for (uint64_t i = 0; tensor->big_endian && i < tensor->size_bytes; i += 2) {
        const char first = data[i];

        data[i] = data[i + 1];
        data[i + 1] = first;
    }
    return data;
}

/*
 * Q5_0_R4 adds to each product what Q5_0 adds to its integer: zeros differ in sign, and a scale
 * that is not finite gives NaN.
 */
static bool are_same_values(const struct dequant_type *type, const char *data, const char *other,
                            uint64_t n_bytes)
{
    for (uint64_t i = 0; type->plain && i < n_bytes; i += sizeof(float)) {
        float a, b;

        memcpy(&a, data + i, sizeof a);
        memcpy(&b, other + i, sizeof b);
        if (a != b && a == a && memcmp(&a, &b, sizeof a) != 0)
            return false;
    }
    return type->plain || memcmp(data, other, n_bytes) == 0;
}

bool fuzz_is_same_data(const struct gguf_model *model, const struct gguf_tensor *stored,
                       const struct gguf_model *copy, const struct gguf_tensor *other,
                       uint64_t first)
{
    const struct dequant_type *type = other->type;
    const bool is_raw = !dequant_is_decodable(stored->type);
    const bool is_decoded =
        !is_raw && (type == stored->type || type == dequant_modern(stored->type));
    char *data = is_raw       ? fuzz_data_of(model, stored)
                 : is_decoded ? fuzz_values_of(model, stored)
                              : fuzz_encoded_of(model, stored, type);
    char *other_data = is_decoded ? fuzz_values_of(copy, other) : fuzz_data_of(copy, other);
    const uint64_t n = stored->n_elements, block = type->block_elements;
    bool is_same;

    if (is_decoded)
        is_same = are_same_values(stored->type, data, other_data + first * sizeof(float),
                                  n * sizeof(float));
    else if (is_raw) /* its size may differ from its blocks' size */
        is_same = stored->size_bytes == other->size_bytes &&
                  memcmp(data, other_data, stored->size_bytes) == 0;
    else
        is_same = memcmp(data, other_data + first / block * type->block_bytes,
                         n / block * type->block_bytes) == 0;
    free(data);
    free(other_data);
    return is_same;
}

char *fuzz_expected_of(const struct gguf_model *model, const struct fs_node *node, size_t *n_bytes)
{
    const struct gguf_tensor *tensor = node->subject;

    if (strcmp(node->name, "raw") == 0) {
        *n_bytes = tensor->size_bytes;
        return fuzz_data_of(model, tensor);
    }
    if (strcmp(node->name, "f32") == 0 || strcmp(node->name, "f32.npy") == 0) {
        *n_bytes = tensor->n_elements * 4;
        return fuzz_values_of(model, tensor);
    }
    if (strcmp(node->name, "f16") == 0 || strcmp(node->name, "f16.npy") == 0) {
        *n_bytes = tensor->n_elements * 2;
        return rounded_of(model, tensor, DEQUANT_F16);
    }
    if (strcmp(node->name, "bf16") == 0) {
        *n_bytes = tensor->n_elements * 2;
        return rounded_of(model, tensor, DEQUANT_BF16);
    }
    return NULL;
}

void fuzz_check_safetensors(const char *bytes, size_t size)
{
    uint64_t n_header_bytes;

    FUZZ_CHECK(size >= sizeof n_header_bytes, "model.safetensors has %zu bytes", size);
    memcpy(&n_header_bytes, bytes, sizeof n_header_bytes);
    FUZZ_CHECK(n_header_bytes % 8 == 0 && n_header_bytes <= size - sizeof n_header_bytes,
               "the header of model.safetensors has %" PRIu64 " bytes", n_header_bytes);
    while (n_header_bytes > 0 && bytes[sizeof n_header_bytes + n_header_bytes - 1] == ' ')
        n_header_bytes--;
    fuzz_check_json(bytes + sizeof n_header_bytes, n_header_bytes);
}
