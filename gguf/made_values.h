/* Metadata values that are computed, not read from a file. They point to memory of the model. */
#pragma once

#include "gguf/model.h"

/* Adds keys. A name that starts with a dot follows the name of the architecture. */
struct gguf_key_adder {
    struct gguf_model *model;
    const char *architecture;
    int result; /* 0, or -ENOMEM: nothing more is added */
};

void gguf_add_value(struct gguf_key_adder *adder, const char *name, struct gguf_value value);
void gguf_add_u32(struct gguf_key_adder *adder, const char *name, uint64_t number);
void gguf_add_f32(struct gguf_key_adder *adder, const char *name, float number);
void gguf_add_bool(struct gguf_key_adder *adder, const char *name, bool is_true);

/* The text must outlive the model. */
void gguf_add_text(struct gguf_key_adder *adder, const char *name, const char *text);

/* An array that is being built: begin it, put exactly n_elements into it, then add it. */
struct gguf_array_builder {
    struct gguf_array array;
    uint8_t *at; /* where the next element goes */
};

/*
 * Begin an array whose elements take size_bytes; a string takes 8 bytes more than its length.
 * Returns 0 or -ENOMEM.
 */
int gguf_make_array(struct gguf_model *model, enum gguf_value_type element_type,
                    uint64_t n_elements, uint64_t size_bytes, struct gguf_array_builder *builder);
void gguf_put_u32(struct gguf_array_builder *builder, uint32_t number);
/* Returns where the string's bytes must be written. */
uint8_t *gguf_put_string(struct gguf_array_builder *builder, uint64_t length_bytes);
void gguf_add_array(struct gguf_key_adder *adder, const char *name,
                    const struct gguf_array_builder *builder);
