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
