/*
 * Metadata values that are computed, not read from a file. They point to memory of the model.
 * Functions that return int return 0 or -ENOMEM.
 */
#ifndef GGUFS_GGUF_MADE_VALUES_H
#define GGUFS_GGUF_MADE_VALUES_H

#include "gguf/model.h"

int gguf_add_u32(struct gguf_model *model, const char *name, uint32_t number);
int gguf_add_f32(struct gguf_model *model, const char *name, float number);
int gguf_add_bool(struct gguf_model *model, const char *name, bool is_true);

/* The text must outlive the model. */
int gguf_add_text(struct gguf_model *model, const char *name, const char *text);

/* An array that is being built: begin it, put exactly n_elements into it, then add it. */
struct gguf_array_builder {
    struct gguf_array array;
    uint8_t *at; /* where the next element goes */
};

/* Begin an array whose elements take size_bytes; a string takes 8 bytes more than its length. */
int gguf_make_array(struct gguf_model *model, enum gguf_value_type element_type,
                    uint64_t n_elements, uint64_t size_bytes, struct gguf_array_builder *builder);
void gguf_put_u32(struct gguf_array_builder *builder, uint32_t number);
/* Returns where the string's bytes must be written. */
uint8_t *gguf_put_string(struct gguf_array_builder *builder, uint64_t length_bytes);
int gguf_add_array(struct gguf_model *model, const char *name,
                   const struct gguf_array_builder *builder);

#endif
