/* Data of some families in addition to hyperparameters, vocabulary and tensors. */
#ifndef GGUFS_GGUF_OLD_EXTRAS_H
#define GGUFS_GGUF_OLD_EXTRAS_H

#include "gguf/cursor.h"
#include "gguf/made_values.h"

/* whisper: u32 n_mel, u32 n_fft, f32 filters[n_mel * n_fft] */
struct gguf_mel_filters {
    uint32_t n_mel;
    uint32_t n_fft;
    const uint8_t *values; /* f32, in the header's copy */
};

int gguf_mel_filters_read(struct gguf_cursor *cursor, struct gguf_mel_filters *filters,
                          struct gguf_report *report);
void gguf_mel_filters_add_keys(struct gguf_key_adder *adder,
                               const struct gguf_mel_filters *filters);

/*
 * silero-vad: the model's name before the hyperparameters; after them u32 n_in, n_out, kernel_size
 * for each layer of the encoder, then four more numbers.
 */
#define GGUF_VAD_MAX_LAYERS 64
#define GGUF_VAD_PER_LAYER  3
#define GGUF_VAD_N_LAST     4

struct gguf_vad_sizes {
    struct gguf_string model_type;
    uint32_t n_layers;
    uint32_t layers[GGUF_VAD_MAX_LAYERS][GGUF_VAD_PER_LAYER];
    uint32_t last[GGUF_VAD_N_LAST];
};

int gguf_vad_read_name(struct gguf_cursor *cursor, struct gguf_vad_sizes *sizes,
                       struct gguf_report *report);
int gguf_vad_read_layers(struct gguf_cursor *cursor, uint32_t n_layers,
                         struct gguf_vad_sizes *sizes, struct gguf_report *report);
void gguf_vad_add_keys(struct gguf_key_adder *adder, const struct gguf_vad_sizes *sizes);

#endif
