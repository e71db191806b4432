/*
 * config.json and generation_config.json. A row describes the members of config.json by words that
 * spaces separate, in the order of the file:
 *
 *   num_experts=expert_count          the value of a key, see fs_hf_key(), which the model must
 *                                     have; arrays of equal elements count as one value
 *   num_experts=expert_count?         without the key, the member is left out
 *   num_experts=expert_count:0        without the key, this JSON
 *   hidden_act:'silu'                 JSON, with ' for "
 *   layer_types@layer_types/4         members that a function writes, with arguments
 *   attention_bias@has/PATTERN/attn_q true if a tensor matches the pattern, see
 *                                     gguf_tensor_name_matches(); then the class has these biases
 */
#pragma once

#include "fs/tree/hf/hf_rope.h"
#include "fs/tree/hf/hf_rows.h"
#include "fs/tree/output/sink.h"

/* An object of JSON that is being written, one member per line. */
struct fs_hf_config {
    const struct fs_hf_model *hf;
    const struct fs_hf_all_factors *factors; /* only for config.json */
    struct fs_sink *sink;
    bool has_members;
    unsigned depth;    /* of the object, 1 for the outermost */
    char problem[256]; /* the first thing that is missing or wrong; empty: no problem */
};

/* A word of a row. */
struct fs_hf_member {
    const char *name;
    const char *key;          /* NULL: none */
    const char *json;         /* without the key; "": nothing; NULL: the key is required */
    const char *writer;       /* the name of a function; NULL: none */
    const char *arguments[8]; /* of the function, ends at the first NULL */
    char text[192];           /* of the word; the members above point into it */
};

/* Read the word at *at and step over it. Returns false at the end. */
bool fs_hf_next_member(const char **at, struct fs_hf_member *member);

/*
 * Write config.json of the model. fs_hf_factors_read() must have succeeded, unless only
 * config->problem is used.
 */
void fs_hf_write_config(struct fs_hf_config *config, const struct fs_hf_row *row,
                        const char *dtype);

/*
 * Find the member of the row that gives the class its biases of this name, "attn_output" for
 * example. Returns false if the row lacks it.
 */
bool fs_hf_find_switch(const struct fs_hf_row *row, const char *bias, struct fs_hf_member *member);

/* Return true if a member of the row has the value of this key. */
bool fs_hf_row_reads(const struct fs_hf_row *row, const char *key);

/* Write generation_config.json. */
void fs_hf_write_generation_config(struct fs_hf_config *config);

/* ---- functions that words name ---- */

typedef void fs_hf_writer(struct fs_hf_config *config, const struct fs_hf_member *member);

/* Those of hf_values.c, hf_rope.c and hf_model_values.c; X(n_layer) is fs_hf_write_n_layer(). */
#define FS_HF_WRITERS(X)                                                                           \
    X(vocab_size), X(token_id), X(ends), X(has), X(lacks), X(kinds), X(n_layer), X(head_dim),      \
        X(n_head_kv), X(hybrid_n_head_kv), X(window), X(layer_types), X(layers_with), X(n_dense),  \
        X(gating), X(normed), X(rows), X(columns), X(largest), X(quotient), X(equals),             \
        X(attention_scale), X(n_shared), X(last_layer), X(rope), X(phi3_rope), X(rope_by_type),    \
        X(gemma4_rope), X(minicpm_scales), X(whole_part), X(heads), X(query_scalar), X(sparsity),  \
        X(n_shared_kv), X(gemma4_heads), X(multi_query), X(decoder), X(mpt_attention),             \
        X(dbrx_parts), X(full_n_head_kv), X(latent_widths), X(choice_method), X(granite_rotation), \
        X(jamba_layers)
#define FS_HF_WRITER(name) fs_hf_write_##name
fs_hf_writer FS_HF_WRITERS(FS_HF_WRITER);

/* Return the number of an argument; 0 if there are not so many. */
uint64_t fs_hf_argument(const struct fs_hf_member *member, size_t index);

/* Begin a member: its name, after which its value must be written to the sink. */
void fs_hf_member(struct fs_hf_config *config, const char *name);
/* Write JSON, with ' for " and without spaces behind commas. */
void fs_hf_member_json(struct fs_hf_config *config, const char *name, const char *json);
void fs_hf_member_unsigned(struct fs_hf_config *config, const char *name, uint64_t number);
/* The number in the shortest form that reads back as the same float. */
void fs_hf_member_float(struct fs_hf_config *config, const char *name, double number);
/* The same as a double. */
void fs_hf_member_ratio(struct fs_hf_config *config, const char *name, double number);
void fs_hf_member_bool(struct fs_hf_config *config, const char *name, bool is_true);
void fs_hf_member_text(struct fs_hf_config *config, const char *name, const char *text);
/* Write the value of a key. Returns false if the model lacks it. */
bool fs_hf_member_key(struct fs_hf_config *config, const char *name, const char *key);
/* Begin and end a member that is an object. */
void fs_hf_begin_object(struct fs_hf_config *config, const char *name);
void fs_hf_end_object(struct fs_hf_config *config);
/* Begin and end a member that is an array, and write its elements. */
void fs_hf_begin_array(struct fs_hf_config *config, const char *name);
void fs_hf_element(struct fs_hf_config *config, const struct gguf_value *value);
void fs_hf_element_text(struct fs_hf_config *config, const char *text);
void fs_hf_element_unsigned(struct fs_hf_config *config, uint64_t number);
void fs_hf_end_array(struct fs_hf_config *config);
/* Note a problem, unless there is one already. */
void fs_hf_problem(struct fs_hf_config *config, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
