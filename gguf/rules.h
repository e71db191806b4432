/*
 * The rules that findings about a model file come from. Each has a name that never changes, for
 * programs, an explanation and a remedy. gguf/rules.c is the only list of their texts.
 *
 * To add a rule: a value here, its row in gguf/rules.c, and its entry in ggufs.5.
 */
#pragma once

#include <stdbool.h>

enum gguf_rule {
    /* the file and the system */
    GGUF_RULE_OPEN,
    GGUF_RULE_READ,
    GGUF_RULE_MEMORY,
    GGUF_RULE_NOT_A_FILE,
    GGUF_RULE_RANGE,

    /* files that are not GGUF */
    GGUF_RULE_EMPTY_FILE,
    GGUF_RULE_NOT_DOWNLOADED,
    GGUF_RULE_NOT_CONVERTED,
    GGUF_RULE_PACKED,
    GGUF_RULE_NOT_A_MODEL,

    /* ZIP files */
    GGUF_RULE_ZIP,
    GGUF_RULE_SEVERAL_MODELS,

    /* metadata */
    GGUF_RULE_VERSION,
    GGUF_RULE_TRUNCATED_METADATA,
    GGUF_RULE_METADATA_LIMIT,
    GGUF_RULE_METADATA_HOLES,
    GGUF_RULE_NAME_LENGTH,
    GGUF_RULE_VALUE_TYPE,
    GGUF_RULE_VALUE,
    GGUF_RULE_DUPLICATE_KEY,
    GGUF_RULE_ALIGNMENT,
    GGUF_RULE_VOCABULARY,
    GGUF_RULE_TOKEN_ID,
    GGUF_RULE_CHAT_TEMPLATE,
    GGUF_RULE_TEMPLATE_INTERNALS,
    GGUF_RULE_TEMPLATE_WORDS,
    GGUF_RULE_TEMPLATE_URL,
    GGUF_RULE_TEMPLATE_BOS,
    GGUF_RULE_TEMPLATE_TOKENS,
    GGUF_RULE_TEMPLATE_TURNS,
    GGUF_RULE_SHAPE_KEYS,
    GGUF_RULE_NEEDED_KEYS,
    GGUF_RULE_ORIGINAL_SHAPE,
    GGUF_RULE_TENSOR_LIST,
    GGUF_RULE_FUSED,
    GGUF_RULE_LOADER,

    /* tensors */
    GGUF_RULE_DUPLICATE_TENSOR,
    GGUF_RULE_DIMENSIONS,
    GGUF_RULE_UNKNOWN_TYPE,
    GGUF_RULE_ROTATED_WEIGHTS,
    GGUF_RULE_SHARED_TYPE,
    GGUF_RULE_ROW_LENGTH,
    GGUF_RULE_TENSOR_OFFSET,
    GGUF_RULE_OVERLAP,
    GGUF_RULE_TRUNCATED_DATA,
    GGUF_RULE_INCOMPLETE_DATA,
    GGUF_RULE_UNUSED_BYTES,
    GGUF_RULE_ZEROS,
    GGUF_RULE_NOT_FINITE,

    /* split models */
    GGUF_RULE_SHARD_KEYS,
    GGUF_RULE_SHARD_NAME,
    GGUF_RULE_SHARD_MISSING,
    GGUF_RULE_SHARD_MISMATCH,
    GGUF_RULE_SHARD_METADATA,

    /* files from before GGUF */
    GGUF_RULE_FAMILY,
    GGUF_RULE_HYPERPARAMETER,
    GGUF_RULE_OLD_TYPE,
    GGUF_RULE_ERA,
    GGUF_RULE_TENSORS_MISSING,

    /* what the user asks for */
    GGUF_RULE_EDIT,
    GGUF_RULE_COMPOSITION,
    GGUF_RULE_SPLIT,
    GGUF_RULE_FILE_NAMES,

    GGUF_N_RULES
};

/* Programs that load models, as bits. */
enum {
    GGUF_LOADER_LLAMA = 1,  /* llama.cpp */
    GGUF_LOADER_OLLAMA = 2, /* Ollama, whose llama.cpp also takes older files of its own */
    GGUF_LOADER_IK = 4,     /* ik_llama.cpp */
};
#define GGUF_ALL_LOADERS (GGUF_LOADER_LLAMA | GGUF_LOADER_OLLAMA | GGUF_LOADER_IK)

struct gguf_rule_text {
    const char *name;        /* lower-case words with hyphens */
    const char *explanation; /* one sentence: what the finding means */
    const char *remedy;      /* sentences: what a person can do */
    bool is_in_message;      /* the message has a remedy of its own, so this one is not printed */
    unsigned refused_by;     /* loaders for which a warning or a note of the rule is an error */
};

/* Return the texts of a rule. */
const struct gguf_rule_text *gguf_rule_text(enum gguf_rule rule);
