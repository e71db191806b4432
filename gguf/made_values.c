#include "gguf/made_values.h"

#include <errno.h>
#include <stdio.h>

void gguf_add_value(struct gguf_key_adder *adder, const char *name, struct gguf_value value)
{
    char full_name[128];

    snprintf(full_name, sizeof full_name, "%s%s", *name == '.' ? adder->architecture : "", name);
    if (adder->result == 0 && !gguf_set_key(adder->model, full_name, value))
        adder->result = -ENOMEM;
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
    gguf_add_value(adder, name, gguf_value_of_text(text));
}
