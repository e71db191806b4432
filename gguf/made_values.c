#include "gguf/made_values.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int gguf_add_u32(struct gguf_model *model, const char *name, uint32_t number)
{
    return gguf_add_key(model, name, (struct gguf_value){.type = GGUF_UINT32, .u64 = number});
}

int gguf_add_f32(struct gguf_model *model, const char *name, float number)
{
    return gguf_add_key(model, name, (struct gguf_value){.type = GGUF_FLOAT32, .f32 = number});
}

int gguf_add_bool(struct gguf_model *model, const char *name, bool is_true)
{
    return gguf_add_key(model, name, (struct gguf_value){.type = GGUF_BOOL, .boolean = is_true});
}

int gguf_add_text(struct gguf_model *model, const char *name, const char *text)
{
    return gguf_add_key(
        model, name,
        (struct gguf_value){.type = GGUF_STRING, .string = {text, (uint64_t)strlen(text)}});
}

int gguf_make_array(struct gguf_model *model, enum gguf_value_type element_type,
                    uint64_t n_elements, uint64_t size_bytes, struct gguf_making *making)
{
    making->at = gguf_keep(model, size_bytes);
    if (!making->at)
        return -ENOMEM;
    making->array = (struct gguf_array){.element_type = element_type,
                                        .n_elements = n_elements,
                                        .data = making->at,
                                        .size_bytes = size_bytes,
                                        .encoding = {.big_endian = false, .length_bytes = 8}};
    return 0;
}

static void put_number(struct gguf_making *making, uint64_t number, unsigned width_bytes)
{
    assert((uint64_t)(making->at - making->array.data) + width_bytes <= making->array.size_bytes);
    for (unsigned i = 0; i < width_bytes; i++)
        *making->at++ = (uint8_t)(number >> 8 * i);
}

void gguf_put_u32(struct gguf_making *making, uint32_t number)
{
    put_number(making, number, sizeof number);
}

uint8_t *gguf_put_string(struct gguf_making *making, uint64_t length_bytes)
{
    uint8_t *bytes;

    put_number(making, length_bytes, sizeof length_bytes);
    bytes = making->at;
    making->at += length_bytes;
    assert((uint64_t)(making->at - making->array.data) <= making->array.size_bytes);
    return bytes;
}

int gguf_add_array(struct gguf_model *model, const char *name, const struct gguf_making *making)
{
    assert((uint64_t)(making->at - making->array.data) == making->array.size_bytes);
    return gguf_add_key(model, name,
                        (struct gguf_value){.type = GGUF_ARRAY, .array = making->array});
}
