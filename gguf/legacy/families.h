/*
 * The families of models in files from before GGUF: one row a family, with all that its files do
 * not say themselves. Sources: the loaders and converters of llama.cpp, of the examples of ggml and
 * of whisper.cpp from 2023; the keys are those of the GGUF specification, ggml/docs/gguf.md.
 */
#ifndef GGUFS_GGUF_FAMILIES_H
#define GGUFS_GGUF_FAMILIES_H

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a hyperparameter is to the parser. */
enum gguf_role {
    GGUF_ROLE_NONE,
    GGUF_ROLE_VOCABULARY, /* the number of tokens */
    GGUF_ROLE_WIDTH,      /* of an embedding */
    GGUF_ROLE_HEADS,
    GGUF_ROLE_HEAD_WIDTH,
    GGUF_ROLE_ROTATED,     /* elements of a head that turn with the position */
    GGUF_ROLE_LAYERS,      /* '#' in the names of tensors counts up to it */
    GGUF_ROLE_MORE_LAYERS, /* so does '@' */
    GGUF_ROLE_FILE_TYPE,   /* of most tensors, plus 1000 times the quantization version */
    GGUF_ROLE_FLOAT,
    GGUF_ROLE_BOOL,
    GGUF_N_ROLES
};

struct gguf_hyperparameter {
    const char *name; /* in the sources of its day */
    const char *key;  /* what stands behind the architecture; NULL: "." and the name */
    enum gguf_role role;
};

/* How the vocabulary lies in the file. */
enum gguf_vocabulary_style {
    GGUF_VOCABULARY_PLAIN,   /* as many strings as the hyperparameter says */
    GGUF_VOCABULARY_SCORED,  /* the same, each with a float behind it, but for magic ggml */
    GGUF_VOCABULARY_COUNTED, /* a count, then the strings */
    GGUF_VOCABULARY_NONE,
};

/* What the names of tensors are today. '#' and '@' stand for the number of a layer. */
struct gguf_name_rule {
    const char *old_name;
    const char *name; /* NULL: GGUF has none */
    bool is_optional; /* whether a complete model may do without */
};

/* What no file says because the programs of the day took it for granted. */
struct gguf_constant {
    const char *key; /* behind the architecture; without a dot at its start: the whole key */
    float number;
    bool is_float; /* else uint32 */
};

struct gguf_family {
    const char *name; /* for -o family= */
    const char *architecture;
    /* Laid out as a row above it, which is taken unless the user asks for this one. */
    bool is_twin;
    bool has_vocabulary_files; /* there are files of a vocabulary without tensors */

    const struct gguf_hyperparameter *hyperparameters; /* up to one without a name */
    enum gguf_vocabulary_style vocabulary;
    const char *tokenizer;                 /* "llama" or "gpt2" */
    const struct gguf_name_rule *names;    /* up to one without an old name */
    const struct gguf_constant *constants; /* up to one without a key; may be NULL */
    /* What lies elsewhere than in numbers in a row; see gguf/legacy/parse_ggml.c */
    enum gguf_extra { GGUF_EXTRA_NONE, GGUF_EXTRA_MEL_FILTERS, GGUF_EXTRA_VAD } extra;
};

#define GGUF_MAX_HYPERPARAMETERS 16

/* NULL behind the last. */
const struct gguf_family *gguf_family_at(size_t index);

/* NULL if there is no such family. */
const struct gguf_family *gguf_family_by_name(const char *name);

/*
 * The rule for a tensor, or NULL. The number of the layer, below n_layers (for '#') or n_more (for
 * '@'), goes to *layer; 0 if there is none.
 */
const struct gguf_name_rule *gguf_rule_of(const struct gguf_name_rule *rules,
                                          struct gguf_string old_name, uint32_t n_layers,
                                          uint32_t n_more, uint32_t *layer);

#endif
