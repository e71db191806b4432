/* Checks the tensors of a model against the lists of its architecture, see models.h. */
#pragma once

#include "gguf/models/models.h"

/* Return true if the model has a tensor of that name in GGUF. */
typedef bool gguf_tensor_finder(const void *user, const char *name);

enum { GGUF_LIST_NAME_BYTES = 96 };

/* A violation of the lists. */
struct gguf_missing_tensor {
    char name[GGUF_LIST_NAME_BYTES];    /* the missing tensor, in full: "blk.0.attn_v.weight"; for a
                                           missing part, "blk.0.*" */
    char others[GGUF_LIST_NAME_BYTES];  /* "attn_qkv|…": alternatives to it; "" without any */
    char because[GGUF_LIST_NAME_BYTES]; /* the tensor that requires it, of the same group; "" if the
                                           architecture requires it */
    const char *part; /* the part that a layer lacks, "attention" or "feed-forward"; else NULL */
};

/* The parts of a layer, as bits. */
enum {
    GGUF_PART_ATTENTION = 1,
    GGUF_PART_RECURRENCE = 2,
    GGUF_PART_DENSE = 4,
    GGUF_PART_EXPERTS = 8,
    GGUF_PART_NEXTN = 16,
};

/* Return the parts of a layer. */
unsigned gguf_layer_parts(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                          const void *user, uint32_t layer);

/*
 * Return true if the model has all required tensors outside of layers, or of one layer. If not,
 * *missing is the first missing one.
 */
bool gguf_check_model_tensors(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                              const void *user, struct gguf_missing_tensor *missing);
bool gguf_check_layer_tensors(const struct gguf_architecture *architecture, gguf_tensor_finder *has,
                              const void *user, uint32_t layer,
                              struct gguf_missing_tensor *missing);

/* Return true if a list of the row names the tensor, which is written in full. */
bool gguf_lists_have(const struct gguf_architecture *architecture, const char *name);

/*
 * Return true if models that have the weight, "blk.0.attn_q.weight", must have this bias of it,
 * "blk.0.attn_q.bias", too.
 */
bool gguf_lists_require_bias(const struct gguf_architecture *architecture, const char *name);

/* Return true if a list of any architecture names the tensor. */
bool gguf_any_lists_have(const char *name);

/*
 * Get a name of a list, of `length` bytes, as it is written ("attn_norm", "ffn_up.bias"). It is
 * required unless it may be missing or is one of several.
 */
typedef int gguf_list_visitor(void *user, const char *name, size_t length, bool is_required);

/*
 * Visit all names of a list in its order. `list` may be NULL. A result other than 0 ends the walk
 * and is returned.
 */
int gguf_list_walk(const char *list, gguf_list_visitor *visit, void *user);
