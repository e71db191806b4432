#include "gguf/legacy/old_reading.h"
#include "gguf/legacy/old_tensors.h"
#include "gguf/made_values.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY_BYTES 128

float gguf_old_float(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Add a key; a name that starts with a dot is prefixed with the architecture. */
static int add_u32(struct gguf_model *model, const struct gguf_family *family, const char *key,
                   uint32_t number)
{
    char name[KEY_BYTES];

    snprintf(name, sizeof name, "%s%s", *key == '.' ? family->architecture : "", key);
    return gguf_add_u32(model, name, number);
}

static int add_f32(struct gguf_model *model, const struct gguf_family *family, const char *key,
                   float number)
{
    char name[KEY_BYTES];

    snprintf(name, sizeof name, "%s%s", *key == '.' ? family->architecture : "", key);
    return gguf_add_f32(model, name, number);
}

/*
 * The old numbers up to 9 are llama.cpp's llama_ftype, as in GGUF files, but GGUF does not know 5
 * and 6 (Q4_2, Q4_3). From 10 on they were the same in llama.cpp only.
 */
static bool is_file_type_of_gguf(const struct gguf_family *family, uint32_t file_type)
{
    if (file_type >= 10)
        return strcmp(family->name, "llama") == 0;
    return file_type != 5 && file_type != 6;
}

static int add_file_type(struct gguf_model *model, const struct gguf_old_reading *reading,
                         uint32_t number)
{
    const uint32_t file_type = number % 1000;

    if (is_file_type_of_gguf(reading->family, file_type))
        return gguf_add_u32(model, "general.file_type", file_type);
    return add_u32(model, reading->family, ".ftype", file_type);
}

static int add_hyperparameter(struct gguf_model *model, const struct gguf_old_reading *reading,
                              const struct gguf_hyperparameter *what, uint32_t number)
{
    const char *architecture = reading->family->architecture;
    char name[KEY_BYTES];

    if (what->role == GGUF_ROLE_FILE_TYPE)
        return add_file_type(model, reading, number);
    if (what->key)
        snprintf(name, sizeof name, "%s%s", architecture, what->key);
    else
        snprintf(name, sizeof name, "%s.%s", architecture, what->name);
    if (what->role == GGUF_ROLE_FLOAT)
        return gguf_add_f32(model, name, gguf_old_float(number));
    if (what->role == GGUF_ROLE_BOOL)
        return gguf_add_bool(model, name, number == 1);
    return gguf_add_u32(model, name, number);
}

static int add_hyperparameters(struct gguf_model *model, const struct gguf_old_reading *reading)
{
    const struct gguf_hyperparameter *list = reading->family->hyperparameters;
    int result = 0;

    for (size_t i = 0; result == 0 && list[i].name; i++)
        result = add_hyperparameter(model, reading, &list[i], reading->numbers[i]);
    return result;
}

/* Return the number of key-value heads by the shape of the tensor that computes keys, or 0. */
static uint64_t count_kv_heads(const struct gguf_model *model,
                               const struct gguf_old_reading *reading)
{
    const uint32_t width = reading->by_role[GGUF_ROLE_WIDTH];
    const uint32_t n_heads = reading->by_role[GGUF_ROLE_HEADS];
    const struct gguf_tensor *keys = gguf_tensor_named_today(model, "blk.0.attn_k.weight");
    const struct gguf_tensor *all = gguf_tensor_named_today(model, "blk.0.attn_qkv.weight");
    uint64_t n_rows = 0;

    if (keys)
        n_rows = keys->ne[1];
    else if (all && all->ne[1] > width)
        n_rows = (all->ne[1] - width) / 2;
    if (n_heads == 0 || width % n_heads != 0 || n_rows % (width / n_heads) != 0)
        return 0;
    return n_rows / (width / n_heads);
}

/* Add the keys that follow from the shapes of tensors. */
static int add_shapes(struct gguf_model *model, const struct gguf_old_reading *reading)
{
    const struct gguf_tensor *up = gguf_tensor_named_today(model, "blk.0.ffn_up.weight");
    const uint64_t n_kv_heads = count_kv_heads(model, reading);
    int result = 0;

    if (up)
        result = add_u32(model, reading->family, ".feed_forward_length", (uint32_t)up->ne[1]);
    if (result == 0 && n_kv_heads > 0)
        result = add_u32(model, reading->family, ".attention.head_count_kv", (uint32_t)n_kv_heads);
    return result;
}

static int add_constants(struct gguf_model *model, const struct gguf_family *family)
{
    const struct gguf_constant *constant = family->constants;
    int result = 0;

    for (; result == 0 && constant && constant->key; constant++) {
        if (constant->is_float)
            result = add_f32(model, family, constant->key, constant->number);
        else
            result = add_u32(model, family, constant->key, (uint32_t)constant->number);
    }
    return result;
}

static int add_quantization_version(struct gguf_model *model, uint32_t era)
{
    for (uint64_t i = 0; i < model->n_tensors; i++) {
        if (model->tensors[i].type->block_elements > 1)
            return gguf_add_u32(model, "general.quantization_version", era);
    }
    return 0;
}

int gguf_old_keys_add(struct gguf_model *model, const struct gguf_old_reading *reading)
{
    const struct gguf_family *family = reading->family;
    int result = gguf_add_text(model, "general.architecture", family->architecture);

    if (result == 0)
        result = add_quantization_version(model, reading->era);
    if (result == 0)
        result = add_hyperparameters(model, reading);
    if (result == 0)
        result = add_shapes(model, reading);
    if (result == 0)
        result = add_constants(model, family);
    if (result == 0 && family->extra == GGUF_EXTRA_MEL_FILTERS)
        result = gguf_mel_filters_add_keys(model, family->architecture, &reading->filters);
    if (result == 0 && family->extra == GGUF_EXTRA_VAD)
        result = gguf_vad_add_keys(model, family->architecture, &reading->vad);
    return result;
}
