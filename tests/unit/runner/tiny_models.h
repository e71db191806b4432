/*
 * Tiny models of every row of gguf/models/, made from its lists: all tensors that the lists name,
 * with shapes by name, and keys with values that are not the defaults.
 */
#pragma once

#include "gguf/models/models.h"
#include "tests/unit/runner/run_tree_files.h"
#include "tests/unit/runner/tiny_shapes.h"

#include <stddef.h>
#include <stdint.h>

enum { TINY_MAX_TENSORS = 256, TINY_MAX_KEYS = 64 };

struct tiny_tensor {
    char name[64];
    uint64_t ne[4]; /* unused dimensions are 0 */
    bool is_kind;   /* the first tensor of its kind: blk.0.NAME, or NAME */
};

struct tiny_key {
    const char *listed; /* the name in the lists */
    char name[64];      /* with the architecture */
    char value[128];    /* JSON */
};

struct tiny_model {
    const char *architecture;
    const struct gguf_architecture *row;
    bool has_experts; /* in rows whose models may have experts in all layers, or none */
    unsigned n_layer;
    struct tiny_tensor tensors[TINY_MAX_TENSORS];
    size_t n_tensors;
    struct tiny_key keys[TINY_MAX_KEYS];
    size_t n_keys;
};

/* Make the model of an architecture. */
void tiny_model_make(const char *architecture, bool has_experts, struct tiny_model *model);

/* Return true if models of the row have experts in all layers, or none. */
bool tiny_model_may_have_experts(const struct gguf_architecture *row);

/* Return the name of a tensor without "blk.N.". */
const char *tiny_kind(const struct tiny_tensor *tensor);

/* Return the number of elements of a tensor, and fill in its values, the same for a name. */
size_t tiny_n_elements(const struct tiny_tensor *tensor);
void tiny_fill(const struct tiny_tensor *tensor, float *values);

/* Write a tensor with every other value multiplied by `scale`. */
void tiny_write(const struct run_files *files, const struct tiny_tensor *tensor, float scale);

/* Make a tree with the model, which run_files_remove() removes. */
void tiny_model_write(const struct tiny_model *model, struct run_files *files);
