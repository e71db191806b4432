#include "gguf/legacy/old_reading.h"

#include <errno.h>
#include <inttypes.h>

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

void gguf_mel_filters_add_keys(struct gguf_key_adder *adder, const struct gguf_mel_filters *filters)
{
    const struct gguf_value values = {
        .type = GGUF_ARRAY,
        .array = {.element_type = GGUF_FLOAT32,
                  .n_elements = n_filters(filters),
                  .data = filters->values,
                  .size_bytes = n_filters(filters) * sizeof(float),
                  .encoding = {.big_endian = false, .length_bytes = 8}}};

    gguf_add_u32(adder, ".mel_filters.n_mel", filters->n_mel);
    gguf_add_u32(adder, ".mel_filters.n_fft", filters->n_fft);
    gguf_add_value(adder, ".mel_filters.values", values);
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

static void add_layers(struct gguf_key_adder *adder, const char *key, int which,
                       const struct gguf_vad_sizes *sizes)
{
    struct gguf_array_builder builder;
    const int result = gguf_make_array(adder->model, GGUF_UINT32, sizes->n_layers,
                                       sizes->n_layers * sizeof(uint32_t), &builder);

    if (result < 0) {
        adder->result = result;
        return;
    }
    for (uint32_t i = 0; i < sizes->n_layers; i++)
        gguf_put_u32(&builder, sizes->layers[i][which]);
    gguf_add_array(adder, key, &builder);
}

void gguf_vad_add_keys(struct gguf_key_adder *adder, const struct gguf_vad_sizes *sizes)
{
    static const char *const of_layers[GGUF_VAD_PER_LAYER] = {
        ".encoder.in_channels", ".encoder.out_channels", ".encoder.kernel_sizes"};
    static const char *const last[GGUF_VAD_N_LAST] = {".lstm_input_size", ".lstm_hidden_size",
                                                      ".final_conv_in", ".final_conv_out"};

    gguf_add_value(adder, ".model_type",
                   (struct gguf_value){.type = GGUF_STRING, .string = sizes->model_type});
    for (int i = 0; i < GGUF_VAD_PER_LAYER; i++)
        add_layers(adder, of_layers[i], i, sizes);
    for (int i = 0; i < GGUF_VAD_N_LAST; i++)
        gguf_add_u32(adder, last[i], sizes->last[i]);
}
