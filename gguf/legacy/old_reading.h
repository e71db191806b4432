/* The data that gguf/legacy/parse_ggml.c reads from a file, and the metadata made from them. */
#ifndef GGUFS_GGUF_OLD_READING_H
#define GGUFS_GGUF_OLD_READING_H

#include "gguf/legacy/families.h"
#include "gguf/legacy/old_extras.h"
#include "gguf/legacy/old_vocabulary.h"

struct gguf_old_container {
    char magic[5]; /* the bytes in the file */
    const char *name;
    uint32_t last_version; /* 0: the container has no version */
    uint64_t alignment_bytes;
};

/* A file read as one family. */
struct gguf_old_reading {
    const struct gguf_old_container *container;
    const struct gguf_family *family;
    uint32_t version;
    uint32_t era;
    uint32_t numbers[GGUF_MAX_HYPERPARAMETERS]; /* floats as their bits */
    uint32_t by_role[GGUF_N_ROLES];
    struct gguf_old_vocabulary vocabulary;
    struct gguf_mel_filters filters;
    struct gguf_vad_sizes vad;
};

/* Return the alignment of tensor data in the container that starts with this magic. */
uint64_t gguf_old_alignment(const uint8_t magic[4]);

/* Return the float with these bits. */
float gguf_old_float(uint32_t bits);

/* Add general.quantization_version if the model has quantized tensors. */
void gguf_add_quantization_version(struct gguf_key_adder *adder, uint32_t version);

/* Add all keys except the vocabulary's. Returns 0 or -ENOMEM. */
int gguf_old_keys_add(struct gguf_model *model, const struct gguf_old_reading *reading);

#endif
