/*
 * The families of models in files from before GGUF: one row per family, with everything that its
 * files leave out. Sources: the loaders and converters of llama.cpp, of the examples of ggml and of
 * whisper.cpp from 2023; the keys follow the GGUF specification, ggml/docs/gguf.md.
 */
#pragma once

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the parser uses a hyperparameter. */
enum gguf_role {
    GGUF_ROLE_NONE,
    GGUF_ROLE_VOCABULARY, /* the number of tokens */
    GGUF_ROLE_WIDTH,      /* of an embedding */
    GGUF_ROLE_HEADS,
    GGUF_ROLE_HEAD_WIDTH,
    GGUF_ROLE_ROTATED,     /* elements of a head that are rotated (RoPE) */
    GGUF_ROLE_LAYERS,      /* limit of '%' in tensor names */
    GGUF_ROLE_MORE_LAYERS, /* limit of '#' in tensor names */
    GGUF_ROLE_FILE_TYPE,   /* of most tensors, plus 1000 times the quantization version */
    GGUF_ROLE_FLOAT,
    GGUF_ROLE_BOOL,
    GGUF_N_ROLES
};

struct gguf_hyperparameter {
    const char *name; /* as in the loader of its time */
    const char *key;  /* suffix after the architecture's name; NULL: "." and `name` */
    enum gguf_role role;
};

/* How the file stores the vocabulary. */
enum gguf_vocabulary_style {
    GGUF_VOCABULARY_PLAIN,   /* as many strings as the hyperparameter says */
    GGUF_VOCABULARY_SCORED,  /* the same, each followed by a float, except with magic ggml */
    GGUF_VOCABULARY_COUNTED, /* a count, then the strings */
    GGUF_VOCABULARY_NONE,
};

/*
 * Names of tensors in old files and in GGUF are a text: the prefix of layers in old files, in which
 * '%' stands for a layer's number and '#' for the number of a layer of a second kind, then words:
 *
 *   norm.>output_norm.       the old name, and the name in GGUF; "." at the end is ".weight"
 *   .ln_1*>attn_norm*        in layers: PREFIX.ln_1 and blk.%.attn_norm; with .weight and .bias
 *   .ln_1*>attn_norm*?       a complete model may lack the tensor or, of two, the bias
 *   encoder.conv1*           GGUF has no name
 */
#define GGUF_RULE_NAME_BYTES 80
#define GGUF_MAX_NAME_RULES  128

struct gguf_name_rule {
    char old_name[GGUF_RULE_NAME_BYTES];
    char name[GGUF_RULE_NAME_BYTES]; /* "": GGUF has no name */
    bool is_optional;                /* a complete model may lack it */
};

/* Read the rules of a text. Returns their number. */
size_t gguf_name_rules_read(const char *text, struct gguf_name_rule rules[GGUF_MAX_NAME_RULES]);

/* A value that was built into the programs of that time. */
struct gguf_constant {
    const char
        *key; /* suffix after the architecture's name if it starts with a dot, else the whole key */
    float number;
    bool is_float; /* else uint32 */
};

struct gguf_family {
    const char *name; /* for -o family= */
    const char *architecture;
    /* Same layout as an earlier row, so it is never detected; only -o family= selects it. */
    bool is_twin;
    bool has_vocabulary_files; /* files with a vocabulary and no tensors exist */

    const struct gguf_hyperparameter *hyperparameters; /* up to one without a name */
    enum gguf_vocabulary_style vocabulary;
    const char *tokenizer;                 /* "llama" or "gpt2" */
    const char *names;                     /* see struct gguf_name_rule */
    const struct gguf_constant *constants; /* up to one without a key; may be NULL */
    /* Additional data in the file; see gguf/legacy/old_reading.h */
    enum gguf_extra { GGUF_EXTRA_NONE, GGUF_EXTRA_MEL_FILTERS, GGUF_EXTRA_VAD } extra;
    const char *gguf_remark; /* see struct gguf_model */
};

#define GGUF_MAX_HYPERPARAMETERS 16

/* Return row `index`, or NULL after the last. */
const struct gguf_family *gguf_family_at(size_t index);

/* Return its name, or NULL after the last. */
const char *gguf_family_name_at(size_t index);

/* Return the family of that name, or NULL. */
const struct gguf_family *gguf_family_by_name(const char *name);

/*
 * Return true if a tensor's name matches a pattern, the old name of a rule. *layer is the number in
 * the name, which must be below n_layers (for '%') or n_more (for '#'), or 0 without a number.
 */
bool gguf_matches_rule(const char *pattern, struct gguf_string name, uint32_t n_layers,
                       uint32_t n_more, uint32_t *layer);
