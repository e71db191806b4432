/*
 * Kinds of contents of a GGUF file: language models, and other files that programs of the ggml
 * family read. For each kind, the table has the metadata and names of tensors that identify it.
 */
#pragma once

#include "gguf/support/strings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gguf_kind_id {
    GGUF_VOCABULARY,
    GGUF_ADAPTER,
    GGUF_IMATRIX,
    GGUF_CONTROL_VECTOR,
    GGUF_PROJECTOR,
    GGUF_DIFFUSION,
    GGUF_SPEECH_SYNTHESIS,
    GGUF_SPEECH_RECOGNITION,
    GGUF_VOICE_DETECTOR,
    GGUF_DRAFT,
    GGUF_EMBEDDING,
    GGUF_LANGUAGE_MODEL,
    GGUF_TEXT_ENCODER,
    GGUF_IMAGE_AUTOENCODER,
    GGUF_OTHER, /* not recognized */
    GGUF_N_KINDS
};

/*
 * Names of tensors that identify a kind: at least one tensor matches each pattern. A pattern may
 * begin and end with '*', which stands for any text.
 */
struct gguf_kind_sign {
    const char *patterns[2];  /* the second may be NULL */
    const char *architecture; /* of files with these names; NULL: not known */
};

enum { GGUF_MAX_KIND_SIGNS = 24 };

struct gguf_kind {
    const char *name; /* "low-rank adapter (LoRA)" */
    const char *use;  /* what it is for, as a clause; NULL for language models */
    /* Values of general.type, and patterns of general.architecture. NULL-terminated; may be NULL */
    const char *const *types;
    const char *const *architectures;
    bool has_language_tensors; /* may have the tensors of a language model */
    bool is_no_network; /* it has no weights of a network, so the summary shows no quantization */
    struct gguf_kind_sign signs[GGUF_MAX_KIND_SIGNS];
};

/* Metadata of a file that identify its kind. */
struct gguf_kind_metadata {
    struct gguf_string type;         /* general.type; empty: none */
    struct gguf_string architecture; /* general.architecture; empty: none */
    bool has_vocabulary;             /* tokenizer.ggml.tokens */
    bool has_layers;                 /* ARCHITECTURE.block_count, not 0 */
    bool has_only_nextn;             /* ARCHITECTURE.nextn_predict_layers is equal to it */
    uint64_t pooling_type;           /* ARCHITECTURE.pooling_type; 0: none */
};

/* The names of tensors that were seen. All zero: none. */
struct gguf_kind_names {
    uint64_t n_tensors;
    uint64_t seen[GGUF_N_KINDS]; /* 2 bits for each sign: its patterns */
};

struct gguf_kind_found {
    enum gguf_kind_id id;      /* by metadata if they identify it, else by tensors */
    enum gguf_kind_id tensors; /* the kind that the tensors identify, if it is another; else `id` */
    bool is_by_tensors;        /* the metadata do not identify it */
    const char *architecture;  /* by the tensors; NULL: not known */
};

const struct gguf_kind *gguf_kind_at(enum gguf_kind_id id);

/* Return "a" or "an". */
static inline const char *gguf_kind_article(const struct gguf_kind *kind)
{
    return strchr("aeiou", kind->name[0]) ? "an" : "a";
}

/* Note the name of a tensor. */
void gguf_kind_see(struct gguf_kind_names *names, struct gguf_string name);

/* Return the kind of a file, whose tensors all were seen. */
struct gguf_kind_found gguf_kind_find(const struct gguf_kind_metadata *metadata,
                                      const struct gguf_kind_names *names);

/* Return true if a name matches the pattern. */
bool gguf_name_matches(struct gguf_string name, const char *pattern);

/* Return the name of a value of ARCHITECTURE.pooling_type, or NULL if it is unknown. */
const char *gguf_pooling_name(uint64_t type);
