#include "gguf/legacy/old_reading.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

void gguf_add_text(struct gguf_key_adder *adder, const char *name, const char *text)
{
    gguf_add_value(adder, name, gguf_value_of_text(text));
}

#define KEY_BYTES 128

float gguf_old_float(uint32_t bits)
{
    float number;

    memcpy(&number, &bits, sizeof number);
    return number;
}

/*
 * The old numbers up to 9 are llama.cpp's llama_ftype, as in GGUF files, but GGUF does not know 5
 * and 6 (Q4_2, Q4_3). From 10 on they were the same in llama.cpp only.
 */
static void add_file_type(struct gguf_key_adder *adder, const struct gguf_family *family,
                          uint32_t type)
{
    const bool is_known = type < 10 ? type != 5 && type != 6 : strcmp(family->name, "llama") == 0;

    gguf_add_u32(adder, is_known ? "general.file_type" : ".ftype", type);
}

static void add_hyperparameter(struct gguf_key_adder *adder, const struct gguf_family *family,
                               const struct gguf_hyperparameter *what, uint32_t number)
{
    char name[KEY_BYTES];

    snprintf(name, sizeof name, "%s%s", what->key ? "" : ".", what->key ? what->key : what->name);
    if (what->role == GGUF_ROLE_FILE_TYPE)
        add_file_type(adder, family, number % 1000);
    else if (what->role == GGUF_ROLE_FLOAT)
        gguf_add_f32(adder, name, gguf_old_float(number));
    else if (what->role == GGUF_ROLE_BOOL)
        gguf_add_value(adder, name, (struct gguf_value){.type = GGUF_BOOL, .boolean = number == 1});
    else
        gguf_add_u32(adder, name, number);
}

/* Return the number of key-value heads by the shape of the tensor that computes keys, or 0. */
static uint64_t count_kv_heads(const struct gguf_model *model,
                               const struct gguf_old_reading *reading)
{
    const uint32_t width = reading->by_role[GGUF_ROLE_WIDTH];
    const uint32_t n_heads = reading->by_role[GGUF_ROLE_HEADS];
    const struct gguf_tensor *keys = gguf_tensor_named(model, "blk.0.attn_k.weight");
    const struct gguf_tensor *all = gguf_tensor_named(model, "blk.0.attn_qkv.weight");
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
static void add_shapes(struct gguf_key_adder *adder, const struct gguf_old_reading *reading)
{
    const struct gguf_tensor *up = gguf_tensor_named(adder->model, "blk.0.ffn_up.weight");
    const uint64_t n_kv_heads = count_kv_heads(adder->model, reading);

    if (up)
        gguf_add_u32(adder, ".feed_forward_length", up->ne[1]);
    if (n_kv_heads > 0)
        gguf_add_u32(adder, ".attention.head_count_kv", n_kv_heads);
}

void gguf_add_quantization_version(struct gguf_key_adder *adder, uint32_t version)
{
    for (uint64_t i = 0; i < adder->model->n_tensors; i++) {
        if (adder->model->tensors[i].type->block_elements > 1) {
            gguf_add_u32(adder, "general.quantization_version", version);
            return;
        }
    }
}

static void add_mel_filters(struct gguf_key_adder *adder, const struct gguf_mel_filters *filters)
{
    const uint64_t n = (uint64_t)filters->n_mel * filters->n_fft;

    gguf_add_u32(adder, ".mel_filters.n_mel", filters->n_mel);
    gguf_add_u32(adder, ".mel_filters.n_fft", filters->n_fft);
    gguf_add_value(adder, ".mel_filters.values",
                   gguf_value_of_numbers(GGUF_FLOAT32, filters->values, n));
}

static const char *const vad_layers[GGUF_VAD_PER_LAYER] = {
    ".encoder.in_channels", ".encoder.out_channels", ".encoder.kernel_sizes"};
static const char *const vad_last[GGUF_VAD_N_LAST] = {".lstm_input_size", ".lstm_hidden_size",
                                                      ".final_conv_in", ".final_conv_out"};

static uint32_t vad_number(struct gguf_cursor numbers, size_t index)
{
    uint32_t number = 0;

    numbers.offset = index * sizeof number;
    (void)gguf_cursor_u32(&numbers, &number);
    return number;
}

static void add_vad(struct gguf_key_adder *adder, const struct gguf_vad_sizes *sizes)
{
    const size_t n = sizes->n_layers;

    gguf_add_value(adder, ".model_type",
                   (struct gguf_value){.type = GGUF_STRING, .string = sizes->model_type});
    for (size_t i = 0; i < GGUF_VAD_PER_LAYER; i++) {
        uint32_t *numbers = gguf_model_alloc(adder->model, n * sizeof *numbers);

        if (!numbers) {
            adder->result = -ENOMEM;
            return;
        }
        for (size_t layer = 0; layer < n; layer++)
            numbers[layer] = vad_number(sizes->numbers, GGUF_VAD_PER_LAYER * layer + i);
        gguf_add_value(adder, vad_layers[i], gguf_value_of_numbers(GGUF_UINT32, numbers, n));
    }
    for (size_t i = 0; i < GGUF_VAD_N_LAST; i++)
        gguf_add_u32(adder, vad_last[i], vad_number(sizes->numbers, GGUF_VAD_PER_LAYER * n + i));
}

int gguf_old_keys_add(struct gguf_model *model, const struct gguf_old_reading *reading)
{
    const struct gguf_family *family = reading->family;
    const struct gguf_hyperparameter *list = family->hyperparameters;
    const struct gguf_constant *constant = family->constants;
    struct gguf_key_adder adder = {.model = model, .architecture = family->architecture};

    gguf_add_text(&adder, "general.architecture", family->architecture);
    gguf_add_quantization_version(&adder, reading->era);
    for (size_t i = 0; list[i].name; i++)
        add_hyperparameter(&adder, family, &list[i], reading->numbers[i]);
    add_shapes(&adder, reading);
    for (; constant && constant->key; constant++) {
        if (constant->is_float)
            gguf_add_f32(&adder, constant->key, constant->number);
        else
            gguf_add_u32(&adder, constant->key, (uint64_t)constant->number);
    }
    if (family->extra == GGUF_EXTRA_MEL_FILTERS)
        add_mel_filters(&adder, &reading->filters);
    if (family->extra == GGUF_EXTRA_VAD)
        add_vad(&adder, &reading->vad);
    return adder.result;
}
