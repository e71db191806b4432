/* Limits that several folders share. Each is several times what any known model has. */
#pragma once

/* ggml computes with four dimensions; video models from ComfyUI-GGUF have five and more. */
#define GGUF_MAX_DIMS    8
#define GGUF_MAX_TENSORS 262144
#define GGUF_MAX_KEYS    262144
/* Files of a model: split.count is a uint16. */
#define GGUF_MAX_SHARDS 65535u
#define GGUF_MAX_LAYERS 1024u

/* Tokens of a vocabulary and rows of an embedding: ids plus 1 fit in 20 bits of a hash table. */
#define GGUF_TOKEN_ID_BITS 20
#define GGUF_MAX_TOKENS    ((1u << GGUF_TOKEN_ID_BITS) - 1)
/* Texts of all tokens together. */
#define GGUF_MAX_TOKENS_BYTES (1u << 28)
