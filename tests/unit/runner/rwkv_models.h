/* Small RWKV models of random weights, in all versions: GGUF files whose tensors have the names
 * that the runner looks for. */
#ifndef GGUFS_TESTS_RWKV_MODELS_H
#define GGUFS_TESTS_RWKV_MODELS_H

#include "contrib/sample/gguf_writer.h"

#include <stdint.h>

enum rwkv_model {
    RWKV_4,
    RWKV_5_1,
    RWKV_5_2,
    RWKV_6,
    RWKV_7,
    RWKV_6_QWEN2, /* with two heads of queries for one of keys, and biases */
    RWKV_7_QWEN2,
    RWKV_MODELS
};

enum { RWKV_N_VOCAB = 24, RWKV_HEAD_SIZE = 64, RWKV_N_EMBD = 128, RWKV_N_LAYER = 2 };

/* Return the model's general.architecture, or NULL if such GGUF files do not exist elsewhere. */
const char *rwkv_model_architecture(enum rwkv_model model);

/* The file, unfinished. Other values than those that are right stand for themselves. */
struct gguf_writer *rwkv_model_write(enum rwkv_model model, uint32_t head_size, uint32_t version);

/* Calls `each` with the name of every tensor of the last layer and of those around the layers. */
void rwkv_model_each(enum rwkv_model model, void (*each)(void *user, const char *name), void *user);

#endif
