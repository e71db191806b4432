/*
 * config.json: tables of members and where their values come from, and the functions that write
 * members which no table can describe.
 */
#pragma once

#include "fs/tree/hf/hf_factors.h"
#include "fs/tree/hf/hf_model.h"
#include "fs/tree/output/sink.h"

#include <stdbool.h>
#include <stddef.h>

struct fs_tree;
struct fs_hf_entry;

/* An object of JSON that is being written, one member per line. */
struct fs_hf_config {
    const struct fs_hf_model *hf;
    const struct fs_hf_all_factors *factors; /* only for config.json */
    struct fs_sink *sink;
    bool has_members;
    unsigned depth;    /* of the object, 1 for the outermost */
    char problem[256]; /* the first thing that is missing or wrong; empty: no problem */
};

typedef void fs_hf_member_writer(struct fs_hf_config *config, const struct fs_hf_entry *entry);

/*
 * A member, or several. The value is the value of `key` or, if the model lacks the key, `json`;
 * without both, the model has no checkpoint. Or it is `json` alone; true or false by `has` or
 * `lacks`; texts by `kinds`; or `write` writes the members.
 */
struct fs_hf_entry {
    const char *name;
    const char *key;   /* as in fs_hf_key(); arrays of equal elements count as one value */
    const char *json;  /* "" leaves the member out */
    const char *has;   /* true if a tensor matches this pattern, see gguf_tensor_name_matches() */
    const char *lacks; /* true if no tensor matches */
    /* With `has`, "attn_q attn_k …": the class has biases of these names if the member is true. */
    const char *biases;
    /*
     * An array with the kind of each layer: pairs of a pattern and the kind of layers with that
     * tensor, then the kind of other layers, then NULL.
     */
    const char *const *kinds;
    const struct fs_hf_entry *table; /* insert the table's members, up to one without a name */
    fs_hf_member_writer *write;
    unsigned number; /* for `write` */
};

/* ---- for writers ---- */

/* Begin a member: its name, after which its value must be written to the sink. */
void fs_hf_member(struct fs_hf_config *config, const char *name);
void fs_hf_member_json(struct fs_hf_config *config, const char *name, const char *json);
void fs_hf_member_unsigned(struct fs_hf_config *config, const char *name, uint64_t number);
/* The number in the shortest form that reads back as the same float. */
void fs_hf_member_float(struct fs_hf_config *config, const char *name, double number);
/* The same as a double. */
void fs_hf_member_ratio(struct fs_hf_config *config, const char *name, double number);
void fs_hf_member_bool(struct fs_hf_config *config, const char *name, bool is_true);
void fs_hf_member_key(struct fs_hf_config *config, const char *name, const struct gguf_key *key);
/* Begin and end a member that is an object. */
void fs_hf_begin_object(struct fs_hf_config *config, const char *name);
void fs_hf_end_object(struct fs_hf_config *config);
/* Begin and end a member that is an array, and write its elements. */
void fs_hf_begin_array(struct fs_hf_config *config, const char *name);
void fs_hf_element_text(struct fs_hf_config *config, const char *text);
void fs_hf_element_float(struct fs_hf_config *config, double number);
void fs_hf_element_unsigned(struct fs_hf_config *config, uint64_t number);
void fs_hf_end_array(struct fs_hf_config *config);
/*
 * Set *factors to the elements of a tensor, half as many as a head has. Returns their number, or
 * 0 if there are none.
 */
size_t fs_hf_get_factors(struct fs_hf_config *config, const char *name, const float **factors);
/* Note a problem, unless there is one already. */
void fs_hf_problem(struct fs_hf_config *config, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writers that rows use, in hf_config_values.c. */
fs_hf_member_writer fs_hf_write_vocab_size;
fs_hf_member_writer fs_hf_write_head_dim;
fs_hf_member_writer fs_hf_write_n_layer;
fs_hf_member_writer fs_hf_write_n_head_kv;
/*
 * The number of key heads in layers with attention. If the key is 0 for all layers, which the
 * converter writes if it recognizes no layer as attention, the shape of attn_k gives the number.
 */
fs_hf_member_writer fs_hf_write_hybrid_n_head_kv;
fs_hf_member_writer fs_hf_write_token_ids;
/*
 * rope_parameters, rope_theta and rope_scaling, in hf_rope.c. The entry's name is "rope" if heads
 * are rotated whole, else the name of the member with the part that is rotated. `number` is the
 * factor from the key yarn_log_multiplier to mscale_all_dim; 0: 1.
 */
fs_hf_member_writer fs_hf_write_rope;
/* The same in the form that Phi3Config accepts. */
fs_hf_member_writer fs_hf_write_phi3_rope;
fs_hf_member_writer fs_hf_write_sliding_window;
/*
 * rope_parameters for each kind of attention. `number` is the base of windowed layers if the key
 * rope.freq_base_swa is missing; 0: the base of the other layers.
 */
fs_hf_member_writer fs_hf_write_rope_by_type;
/* The same for classes that transformers 4 lacks: they do not accept rope_scaling. */
fs_hf_member_writer fs_hf_write_new_rope_by_type;
/*
 * layer_types: attention with or without a window. `number` is the period if the model has no key
 * for it: the last layer of each period has no window; 0: no layer has a window. FS_HF_BY_KEY: the
 * key is required and, if it is a period (Cohere), the first layer of each has no window.
 */
#define FS_HF_BY_KEY UINT32_MAX
fs_hf_member_writer fs_hf_write_layer_types;
/*
 * Note a problem if experts are not selected by function `number` of expert_gating_func, which is
 * the only one of the class. Writes no member.
 */
fs_hf_member_writer fs_hf_demand_gating;
fs_hf_member_writer fs_hf_write_n_dense; /* the number of leading layers without experts */
/* The scale of scores; 1 / √(width of a head) without the key attention.scale. */
fs_hf_member_writer fs_hf_write_attention_scale;
/* The numbers of layers that have a tensor of the pattern `key`. */
fs_hf_member_writer fs_hf_write_layers_with;
fs_hf_member_writer fs_hf_write_rows;    /* the number of rows of tensors `key`, if any */
fs_hf_member_writer fs_hf_write_largest; /* the largest number of the array `key` */
