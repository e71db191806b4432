#include "gguf/legacy/old_extras.h"

#include "gguf/legacy/old_tensors.h"
#include "gguf/made_values.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define KEY_BYTES 128

/* A product of two 32-bit numbers, which cannot overflow. */
static uint64_t n_filters(const struct gguf_mel_filters *filters)
{
    return (uint64_t)filters->n_mel * filters->n_fft;
}

int gguf_mel_filters_read(struct gguf_cursor *cursor, struct gguf_mel_filters *filters,
                          struct gguf_report *report)
{
    if (gguf_cursor_u32(cursor, &filters->n_mel) < 0 ||
        gguf_cursor_u32(cursor, &filters->n_fft) < 0)
        return gguf_cursor_fail(cursor, gguf_at_part("mel filters", 0), "their numbers", report);
    if (n_filters(filters) > gguf_cursor_left(cursor) / sizeof(float))
        return gguf_error(report, GGUF_RULE_TRUNCATED_METADATA, -ENODATA, gguf_at(cursor->offset),
                          "mel filters: %" PRIu32 " by %" PRIu32
                          " numbers are more than the %" PRIu64
                          " bytes that are left of the file (unfinished download?)",
                          filters->n_mel, filters->n_fft, gguf_cursor_left(cursor));
    filters->values = gguf_cursor_take(cursor, n_filters(filters) * sizeof(float));
    return filters->values
               ? 0
               : gguf_cursor_fail(cursor, gguf_at_part("mel filters", 0), "their numbers", report);
}

int gguf_mel_filters_add_keys(struct gguf_model *model, const char *architecture,
                              const struct gguf_mel_filters *filters)
{
    const struct gguf_value values = {
        .type = GGUF_ARRAY,
        .array = {.element_type = GGUF_FLOAT32,
                  .n_elements = n_filters(filters),
                  .data = filters->values,
                  .size_bytes = n_filters(filters) * sizeof(float),
                  .encoding = {.big_endian = false, .length_bytes = 8}}};
    char key[KEY_BYTES];
    int result;

    snprintf(key, sizeof key, "%s.mel_filters.n_mel", architecture);
    result = gguf_add_u32(model, key, filters->n_mel);
    if (result < 0)
        return result;
    snprintf(key, sizeof key, "%s.mel_filters.n_fft", architecture);
    result = gguf_add_u32(model, key, filters->n_fft);
    if (result < 0)
        return result;
    snprintf(key, sizeof key, "%s.mel_filters.values", architecture);
    return gguf_add_key(model, key, values);
}

int gguf_vad_read_name(struct gguf_cursor *cursor, struct gguf_vad_sizes *sizes,
                       struct gguf_report *report)
{
    if (gguf_cursor_string(cursor, &sizes->model_type) < 0)
        return gguf_cursor_fail(cursor, gguf_at_part("header", 0), "the name of the model", report);
    return 0;
}

int gguf_vad_read_layers(struct gguf_cursor *cursor, uint32_t n_layers,
                         struct gguf_vad_sizes *sizes, struct gguf_report *report)
{
    if (n_layers > GGUF_VAD_MAX_LAYERS)
        return gguf_error(report, GGUF_RULE_HYPERPARAMETER, -EINVAL, gguf_at(cursor->offset),
                          "the encoder has %" PRIu32 " layers, the limit is %d", n_layers,
                          GGUF_VAD_MAX_LAYERS);
    sizes->n_layers = n_layers;
    for (uint32_t i = 0; i < n_layers; i++) {
        for (int j = 0; j < GGUF_VAD_PER_LAYER; j++) {
            if (gguf_cursor_u32(cursor, &sizes->layers[i][j]) < 0)
                return gguf_cursor_fail(cursor, gguf_at_part("header", 0), "the encoder's layers",
                                        report);
        }
    }
    for (int i = 0; i < GGUF_VAD_N_LAST; i++) {
        if (gguf_cursor_u32(cursor, &sizes->last[i]) < 0)
            return gguf_cursor_fail(cursor, gguf_at_part("header", 0), "the decoder's sizes",
                                    report);
    }
    return 0;
}

static int add_layers(struct gguf_model *model, const char *key, int which,
                      const struct gguf_vad_sizes *sizes)
{
    struct gguf_array_builder builder;
    int result = gguf_make_array(model, GGUF_UINT32, sizes->n_layers,
                                 sizes->n_layers * sizeof(uint32_t), &builder);

    for (uint32_t i = 0; result == 0 && i < sizes->n_layers; i++)
        gguf_put_u32(&builder, sizes->layers[i][which]);
    return result < 0 ? result : gguf_add_array(model, key, &builder);
}

int gguf_vad_add_keys(struct gguf_model *model, const char *architecture,
                      const struct gguf_vad_sizes *sizes)
{
    static const char *const of_layers[GGUF_VAD_PER_LAYER] = {
        "encoder.in_channels", "encoder.out_channels", "encoder.kernel_sizes"};
    static const char *const last[GGUF_VAD_N_LAST] = {"lstm_input_size", "lstm_hidden_size",
                                                      "final_conv_in", "final_conv_out"};
    char key[KEY_BYTES];
    int result;

    snprintf(key, sizeof key, "%s.model_type", architecture);
    result = gguf_add_key(model, key,
                          (struct gguf_value){.type = GGUF_STRING, .string = sizes->model_type});
    for (int i = 0; result == 0 && i < GGUF_VAD_PER_LAYER; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, of_layers[i]);
        result = add_layers(model, key, i, sizes);
    }
    for (int i = 0; result == 0 && i < GGUF_VAD_N_LAST; i++) {
        snprintf(key, sizeof key, "%s.%s", architecture, last[i]);
        result = gguf_add_u32(model, key, sizes->last[i]);
    }
    return result;
}
