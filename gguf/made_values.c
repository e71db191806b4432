#include "gguf/made_values.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

void gguf_add_value(struct gguf_key_adder *adder, const char *name, struct gguf_value value)
{
    char full_name[128];

    snprintf(full_name, sizeof full_name, "%s%s", *name == '.' ? adder->architecture : "", name);
    if (adder->result == 0)
        adder->result = gguf_add_key(adder->model, full_name, value);
}

void gguf_add_u32(struct gguf_key_adder *adder, const char *name, uint64_t number)
{
    gguf_add_value(adder, name, (struct gguf_value){.type = GGUF_UINT32, .u64 = (uint32_t)number});
}

void gguf_add_f32(struct gguf_key_adder *adder, const char *name, float number)
{
    gguf_add_value(adder, name, (struct gguf_value){.type = GGUF_FLOAT32, .f32 = number});
}

void gguf_add_bool(struct gguf_key_adder *adder, const char *name, bool is_true)
{
    gguf_add_value(adder, name, (struct gguf_value){.type = GGUF_BOOL, .boolean = is_true});
}

void gguf_add_text(struct gguf_key_adder *adder, const char *name, const char *text)
{
    gguf_add_value(adder, name,
                   (struct gguf_value){.type = GGUF_STRING, .string = {text, strlen(text)}});
}

int gguf_make_array(struct gguf_model *model, enum gguf_value_type element_type,
                    uint64_t n_elements, uint64_t size_bytes, struct gguf_array_builder *builder)
{
    builder->at = gguf_model_alloc(model, size_bytes);
    if (!builder->at)
        return -ENOMEM;
    builder->array = (struct gguf_array){.element_type = element_type,
                                         .n_elements = n_elements,
                                         .data = builder->at,
                                         .size_bytes = size_bytes,
                                         .encoding = {.big_endian = false, .length_bytes = 8}};
    return 0;
}

static void put_number(struct gguf_array_builder *builder, uint64_t number, unsigned width_bytes)
{
    assert((uint64_t)(builder->at - builder->array.data) + width_bytes <=
           builder->array.size_bytes);
    for (unsigned i = 0; i < width_bytes; i++)
        *builder->at++ = (uint8_t)(number >> 8 * i);
}

void gguf_put_u32(struct gguf_array_builder *builder, uint32_t number)
{
    put_number(builder, number, sizeof number);
}

uint8_t *gguf_put_string(struct gguf_array_builder *builder, uint64_t length_bytes)
{
    uint8_t *bytes;

    put_number(builder, length_bytes, sizeof length_bytes);
    bytes = builder->at;
    builder->at += length_bytes;
    assert((uint64_t)(builder->at - builder->array.data) <= builder->array.size_bytes);
    return bytes;
}

void gguf_add_array(struct gguf_key_adder *adder, const char *name,
                    const struct gguf_array_builder *builder)
{
    assert((uint64_t)(builder->at - builder->array.data) == builder->array.size_bytes);
    gguf_add_value(adder, name, (struct gguf_value){.type = GGUF_ARRAY, .array = builder->array});
}
