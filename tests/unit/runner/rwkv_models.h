/* Small RWKV models with random weights, in all versions, as GGUF files. */
#pragma once

#include "tests/writer/gguf_writer.h"

#include <stdint.h>

enum rwkv_model {
    RWKV_4,
    RWKV_5_1,
    RWKV_5_2,
    RWKV_6,
    RWKV_7,
    RWKV_6_QWEN2, /* has two query heads per key head, and biases */
    RWKV_7_QWEN2,
    RWKV_MODELS
};

enum { RWKV_N_VOCAB = 24, RWKV_HEAD_SIZE = 64, RWKV_N_EMBD = 128, RWKV_N_LAYER = 2 };

/*
 * Write a model with these values of head size and version, which may be wrong. The caller finishes
 * the file.
 */
struct gguf_writer *rwkv_model_write(enum rwkv_model model, uint32_t head_size, uint32_t version);

/*
 * Call `each` with the name of every tensor of the last layer and of every tensor outside the
 * layers.
 */
void rwkv_model_each(enum rwkv_model model, void (*each)(void *user, const char *name), void *user);
