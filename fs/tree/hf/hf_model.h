/* The facts of a model that the rows of the checkpoint use: keys of its architecture, and tensors
 * by name. */
#pragma once

#include "gguf/model.h"
#include "gguf/models/models.h"
#include "gguf/models/tensor_names.h"
#include "gguf/support/arrays.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fs_hf_model {
    const struct gguf_model *model;
    struct gguf_string architecture;    /* general.architecture; empty if the key is missing */
    const struct gguf_tensor **by_name; /* all tensors, sorted by their GGUF names */
    const struct gguf_key **keys;       /* sorted by name */
    const struct gguf_key *n_head, *n_head_kv; /* keys that are read for each layer, or NULL */
    bool is_reference;                      /* rows of q, k and v are in the checkpoint's order */
    const struct gguf_architecture *listed; /* what the format requires; NULL: unknown */
};

/* Returns 0 or -ENOMEM. Call fs_hf_model_free() in any case. */
int fs_hf_model_make(const struct gguf_model *model, struct fs_hf_model *hf);
void fs_hf_model_free(struct fs_hf_model *hf);

/* Return the tensor of that name, or NULL. */
const struct gguf_tensor *fs_hf_tensor(const struct fs_hf_model *hf, const char *name);

/* Return the first tensor in the file that matches the pattern, or NULL. */
const struct gguf_tensor *fs_hf_any_tensor(const struct fs_hf_model *hf, const char *pattern);

/* Return the key "ARCHITECTURE.name" or "name"; NULL if both are missing. */
const struct gguf_key *fs_hf_key(const struct fs_hf_model *hf, const char *name);

/*
 * Return the number that a key holds for a layer: the key's value, or that element of an array.
 * `otherwise` if the key has no number for it, or the array has over GGUF_MAX_LAYERS elements.
 */
uint64_t fs_hf_number_at(const struct fs_hf_model *hf, const char *name, uint64_t layer,
                         uint64_t otherwise);
double fs_hf_float_at(const struct fs_hf_model *hf, const char *name, uint64_t layer,
                      double otherwise);

/* The same for keys with one value for all layers. Of an array, the largest element counts. */
uint64_t fs_hf_number(const struct fs_hf_model *hf, const char *name, uint64_t otherwise);
double fs_hf_float(const struct fs_hf_model *hf, const char *name, double otherwise);
bool fs_hf_bool(const struct fs_hf_model *hf, const char *name, bool otherwise);

/* Return true if the key is a string and equals the text. */
bool fs_hf_text_is(const struct fs_hf_model *hf, const char *name, const char *text);

/* Return the number of heads of a layer, and the width of a head's key. */
uint64_t fs_hf_n_head(const struct fs_hf_model *hf, uint64_t layer);
uint64_t fs_hf_n_head_kv(const struct fs_hf_model *hf, uint64_t layer);
uint64_t fs_hf_head_dim(const struct fs_hf_model *hf);

/* Return the number of layers of the network, without those that predict further tokens. */
uint64_t fs_hf_n_layer(const struct fs_hf_model *hf);

/* Return the tensor of a layer by a pattern like "blk.%.attn_q.weight", or NULL; get its name. */
const struct gguf_tensor *fs_hf_layer_tensor(const struct fs_hf_model *hf, uint64_t layer,
                                             const char *pattern, char name[GGUF_NAME_BYTES]);
bool fs_hf_layer_has(const struct fs_hf_model *hf, uint64_t layer, const char *pattern);

/* Lines about a model. All zeros: none. */
struct fs_hf_lines {
    struct gguf_buffer text;
    int error; /* -ENOMEM once a line could not be added; else 0 */
};

/* Add a line, unless there are very many. `format` ends with a line break. */
void fs_hf_add_line(struct fs_hf_lines *lines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
