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

/* A limit for the allocation; the model has four. */
#define VAD_MAX_LAYERS 64

static const char *const vad_layers[] = {".encoder.in_channels", ".encoder.out_channels",
                                         ".encoder.kernel_sizes"};
static const char *const vad_last[] = {".lstm_input_size", ".lstm_hidden_size", ".final_conv_in",
                                       ".final_conv_out"};

enum { VAD_PER_LAYER = sizeof vad_layers / sizeof *vad_layers, VAD_N_LAST = 4 };

int gguf_vad_read_layers(struct gguf_cursor *cursor, uint32_t n_layers,
                         struct gguf_vad_sizes *sizes, struct gguf_report *report)
{
    const uint64_t n_bytes = (VAD_PER_LAYER * (uint64_t)n_layers + VAD_N_LAST) * sizeof(uint32_t);
    const uint64_t offset = cursor->offset;
    const uint8_t *numbers;

    if (n_layers > VAD_MAX_LAYERS)
        return gguf_error(report, GGUF_RULE_HYPERPARAMETER, -EINVAL, gguf_at(offset),
                          "the encoder has %" PRIu32 " layers, the limit is %d", n_layers,
                          VAD_MAX_LAYERS);
    numbers = gguf_cursor_take(cursor, n_bytes);
    if (!numbers)
        return gguf_cursor_fail(cursor, gguf_at_part("header", 0),
                                "the sizes of the encoder's layers and of the decoder", report);
    sizes->n_layers = n_layers;
    sizes->numbers = (struct gguf_cursor){.data = numbers, .size_bytes = n_bytes};
    return 0;
}

static uint32_t vad_number(struct gguf_cursor numbers, size_t index)
{
    uint32_t number = 0;

    numbers.offset = index * sizeof number;
    (void)gguf_cursor_u32(&numbers, &number);
    return number;
}

void gguf_vad_add_keys(struct gguf_key_adder *adder, const struct gguf_vad_sizes *sizes)
{
    const size_t n = sizes->n_layers;

    gguf_add_value(adder, ".model_type",
                   (struct gguf_value){.type = GGUF_STRING, .string = sizes->model_type});
    for (size_t i = 0; i < VAD_PER_LAYER; i++) {
        struct gguf_array_builder builder;

        if (gguf_make_array(adder->model, GGUF_UINT32, n, n * sizeof(uint32_t), &builder) < 0) {
            adder->result = -ENOMEM;
            return;
        }
        for (size_t layer = 0; layer < n; layer++)
            gguf_put_u32(&builder, vad_number(sizes->numbers, VAD_PER_LAYER * layer + i));
        gguf_add_array(adder, vad_layers[i], &builder);
    }
    for (size_t i = 0; i < VAD_N_LAST; i++)
        gguf_add_u32(adder, vad_last[i], vad_number(sizes->numbers, VAD_PER_LAYER * n + i));
}
