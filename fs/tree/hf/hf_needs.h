/*
 * Checks of a model against a row: each tensor has a place in the checkpoint, and layers have all
 * required tensors. transformers fills weights that a checkpoint lacks with random numbers.
 */
#pragma once

#include "fs/tree/hf/hf_rows.h"

/* The places that tensors of the model have taken. */
struct fs_hf_presence {
    const struct fs_hf_model *hf;
    const struct fs_hf_row *row;
    const struct gguf_names *names;         /* of the row */
    struct fs_hf_lines *unused, *obstacles; /* for lines about the model */
    uint64_t n_layer;                       /* at most GGUF_MAX_LAYERS */
    uint64_t n_all;    /* the key block_count: n_layer, and layers that predict further tokens */
    uint8_t *suffixes; /* for each layer and name, a bit for each suffix that is there */
};

/* Facts that follow from the name of a tensor. */
struct fs_hf_place {
    const struct gguf_rename *rule; /* NULL: none */
    struct gguf_name_match match;
    bool is_listed; /* a list of the architecture names the tensor */
    bool counts_experts;
};

struct fs_hf_place fs_hf_find_place(const struct fs_hf_presence *presence, struct gguf_string name);

/*
 * Return true if the checkpoint has the tensor. Otherwise, a line is added: to `unused` if the
 * class computes the same without the tensor, else to `obstacles`.
 */
bool fs_hf_has_place(const struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                     const struct fs_hf_place *place);

/*
 * Note the place that a tensor has. Adds a line if the number of its experts is not the value of
 * the key expert_count.
 */
void fs_hf_take_place(struct fs_hf_presence *presence, const struct gguf_tensor *tensor,
                      const struct fs_hf_place *place);

/*
 * Add a line for each key in use whose value has another type than its values have, for example an
 * array in place of a number.
 */
void fs_hf_check_types(const struct fs_hf_model *hf, const struct fs_hf_row *row,
                       struct fs_hf_lines *obstacles);

/* Add a line for everything that is missing. */
void fs_hf_check_needs(const struct fs_hf_presence *presence);
