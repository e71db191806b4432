/* The places of a model's tensors in the checkpoint: by their names, as rules of the row say. */
#pragma once

#include "fs/tree/hf/hf_needs.h"

/* Facts that follow from the name of a tensor. They hold for its twin, too, but for match.layer. */
struct fs_hf_place {
    const struct gguf_rename *rule; /* NULL: none */
    size_t index;                   /* of the rule */
    struct gguf_name_match match;
    bool is_listed; /* a list of the architecture names the tensor */
    bool counts_experts;
};

struct fs_hf_place fs_hf_find_place(const struct fs_hf_presence *presence, struct gguf_string name);

/* Return true and the layer of a name like "blk.7.attn_q.weight". */
bool fs_hf_is_in_layer(struct gguf_string name, uint64_t *layer);

/*
 * Return true if the checkpoint has the tensor. Otherwise, or if there is an error, *result is the
 * result of adding a line: to `unused` if the class computes the same without the tensor, else to
 * `obstacles`.
 */
bool fs_hf_has_place(const struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                     const struct fs_hf_place *place, struct gguf_buffer *unused,
                     struct gguf_buffer *obstacles, int *result);
