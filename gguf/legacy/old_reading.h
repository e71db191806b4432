/* The data that gguf/legacy/parse_ggml.c reads from a file, and the metadata made from them. */
#pragma once

#include "gguf/cursor.h"
#include "gguf/legacy/families.h"
#include "gguf/model.h"

/* ---- metadata in another form than GGUF ---- */

/* Adds keys. A name that starts with a dot follows the name of the architecture. */
struct gguf_key_adder {
    struct gguf_model *model;
    const char *architecture;
    int result; /* 0, or -ENOMEM: nothing more is added */
};

void gguf_add_value(struct gguf_key_adder *adder, const char *name, struct gguf_value value);
void gguf_add_u32(struct gguf_key_adder *adder, const char *name, uint64_t number);
void gguf_add_f32(struct gguf_key_adder *adder, const char *name, float number);

/* The text must outlive the model. */
void gguf_add_text(struct gguf_key_adder *adder, const char *name, const char *text);

/* ---- vocabularies: old_vocabulary.c ---- */

/*
 * For each token a u32 length and its bytes, which are the text that it stands for, and in some
 * files an f32 score.
 */
struct gguf_old_vocabulary {
    const uint8_t *bytes; /* of all tokens, in the header's copy */
    uint64_t size_bytes;
    uint64_t file_offset;
    struct gguf_encoding encoding;
    uint64_t n_tokens;
    bool has_scores;
};

/* Limit of the memory for a vocabulary. Real ones take less than a tenth of it. */
#define GGUF_MAX_VOCABULARY_BYTES (64u << 20)

/*
 * Move the cursor past n_tokens tokens and record their place. Returns 0, or a negative errno with
 * the reason in the cursor's report.
 */
int gguf_old_vocabulary_read(struct gguf_cursor *cursor, uint64_t n_tokens, bool has_scores,
                             struct gguf_old_vocabulary *vocabulary);

/*
 * Add the keys tokenizer.ggml.*, with the tokens as GGUF writes them. `tokenizer` is "llama":
 * U+2581 for spaces, <0xXX> for the tokens that are single bytes, the types of all; or "gpt2": a
 * visible character for every byte. Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_old_vocabulary_add_keys(struct gguf_model *model, const char *tokenizer,
                                 const struct gguf_old_vocabulary *vocabulary,
                                 struct gguf_report *report);

/* ---- data in addition to hyperparameters, vocabulary and tensors ---- */

/* whisper: u32 n_mel, u32 n_fft, f32 filters[n_mel * n_fft] */
struct gguf_mel_filters {
    uint32_t n_mel;
    uint32_t n_fft;
    const uint8_t *values; /* f32, in the header's copy */
};

/*
 * silero-vad: the model's name before the hyperparameters; after them u32 n_in, n_out, kernel_size
 * for each layer of the encoder, then four more numbers.
 */
struct gguf_vad_sizes {
    struct gguf_string model_type;
    uint32_t n_layers;
    struct gguf_cursor numbers; /* of all layers, then the last, in the header's copy */
};

enum { GGUF_VAD_PER_LAYER = 3, GGUF_VAD_N_LAST = 4 };

/* ---- a whole file ---- */

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

/* ---- tensors: old_tensors.c ---- */

/*
 * Instead of a tensor table, the rest of the file has for each tensor
 *
 *   u32 n_dims, u32 length of the name, u32 type, u32 ne[n_dims], name, padding, data
 *
 * so a reader must know the size of every type.
 */
struct gguf_old_layout {
    uint64_t alignment_bytes; /* of the data, from the start of the file */
    /* Return the type for an id in the file, or NULL if the id is unknown. */
    const struct dequant_type *(*type_of)(const void *user, uint32_t id);
    const void *user;
};

/*
 * Read all tensors from the cursor to the end of the file into the model. Returns 0, or a negative
 * errno with the reason in the cursor's report; the model then has the tensors before the one that
 * failed.
 */
int gguf_old_tensors_read(struct gguf_cursor *cursor, const struct gguf_old_layout *layout,
                          struct gguf_model *model);

/* Remove all tensors from the model, and cut the header's copy before the first one. */
void gguf_old_tensors_drop(struct gguf_model *model);

/*
 * Set the GGUF name of each tensor, and check that a model with tensors has all of them: this is
 * the only sign of a file that was cut between two tensors. Numbers of layers are as for
 * gguf_matches_rule(), `names` as for gguf_name_rules_read(). Returns 0, or a negative errno with
 * the reason in `report`.
 */
int gguf_old_tensors_name(struct gguf_model *model, const char *names, uint32_t n_layers,
                          uint32_t n_more, struct gguf_report *report);
