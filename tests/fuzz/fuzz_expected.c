#include "tests/fuzz/fuzz_expected.h"

#include "dequant/kernels.h"
#include "tests/fuzz/fuzz_check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *fuzz_data_of(const struct gguf_model *model, const struct gguf_tensor *tensor)
{
    char *blocks = fuzz_alloc(tensor->size_bytes);

    if (tensor->size_bytes > 0)
        memcpy(blocks, model->files[0].mapping + tensor->file_offset, tensor->size_bytes);
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

/* The values rounded to a type with an encoder, or its own numbers if it is stored so. */
static char *rounded_of(const struct gguf_model *model, const struct gguf_tensor *tensor,
                        uint32_t type_id)
{
    char *values, *rounded;

    if (tensor->type->id == type_id && !tensor->big_endian)
        return fuzz_data_of(model, tensor);
    values = fuzz_values_of(model, tensor);
    rounded = fuzz_alloc(tensor->n_elements * 2);
    dequant_encode(dequant_type_by_id(type_id), values, rounded, tensor->n_elements);
    free(values);
    return rounded;
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
