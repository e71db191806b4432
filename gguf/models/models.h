/*
 * The table of architectures: what files in GGUF hold for each value of general.architecture.
 * ggufs, ggufs-run and old formats read it. It says which tensors and keys there must be, and what
 * holds for keys that a file lacks. How a layer computes is not here (contrib/runner/engine/), nor
 * what config.json says (fs/tree/hf/).
 *
 *   models_dense.c, models_experts.c, models_recurrent.c   the rows
 *   model_parts.h                                          lists that rows share
 *   tensor_lists.[ch]                                      checks tensors against the lists
 *   key_lists.[ch]                                         looks up keys
 *
 * A row is read like this:
 *
 *   {.name = "gemma2",
 *    .tensors = {.model = "token_embd output_norm", .layer = "attn_norm …", .attention = …},
 *    .keys = "attention.sliding_window=4096 logit_scale expert_group_count?",
 *    .window = {.period = 2},
 *    .big = {.n_layer = 46}}
 *
 * Lists are words separated by spaces.
 *
 *   Word in tensors
 *     attn_norm           NAME.weight, or a tensor of exactly that name, must be there
 *     output?             may be missing
 *     attn_qkv|attn_q     one of them, the first that is there
 *     (a b c)?            all of them or none
 *
 *   Word in keys
 *     logit_scale         the key ARCHITECTURE.logit_scale must be there
 *     clamp_kqv?          may be missing
 *     top_k=8             8 if it is missing
 *     scale:1             1 in all models; the key is not read
 *     a|b                 one of them must be there
 *     /xielu.eps          the key xielu.eps, without ARCHITECTURE, must be there
 *
 * Tensors may also have NAME.scale and NAME.input_scale, which storage formats add. Names are as in
 * GGUF, without "blk.N.". Lists follow llama.cpp's src/models/: what it requires is required.
 * They are stricter where every published file has the tensor or the key, since a model that lacks
 * it would run and give other results.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GGUF_N_PARTS = 5 };

/*
 * A layer has a part if it has a tensor that, in this row, only the list of that part names. Then
 * it has all tensors of the list. Tensors that no list names are not part of the model.
 */
struct gguf_tensor_lists {
    const char *model; /* outside of layers */
    const char *layer; /* of every layer that has any part */
    union {
        struct { /* NULL: no layer has the part */
            const char *attention;
            const char *recurrence; /* state-space models, linear attention, convolutions */
            const char *dense;      /* a feed-forward that all tokens use */
            const char *experts;    /* a mixture of experts, with shared experts */
            const char *nextn;      /* more of the last layers, which predict further tokens */
        };
        const char *parts[GGUF_N_PARTS];
    };
};

/* The parts that a layer must have. */
enum gguf_blocks {
    GGUF_TWO_BLOCKS, /* attention or a recurrence, and a feed-forward or experts */
    GGUF_ONE_BLOCK,  /* one of these */
    GGUF_ANY_BLOCKS, /* both, one or none */
};

/* Layers whose attention sees a window, in files without attention.sliding_window_pattern. */
struct gguf_window_layers {
    uint32_t period;    /* one of so many layers has no window; 0: all layers have one */
    bool is_first_full; /* it is the first of each period instead of the last */
};

/*
 * The size of the model of an architecture that differs from the others in more than numbers,
 * although no key says so. A member of 0 matches any model; both 0: no size does.
 */
struct gguf_big_model {
    uint32_t n_layer, n_expert;
};

struct gguf_architecture {
    const char *name;    /* general.architecture */
    const char *same_as; /* the row that has all other members; NULL: this one */
    struct gguf_tensor_lists tensors;
    const char *keys; /* added to the keys of every row (key_lists.c), or replacing them */
    struct gguf_window_layers window;
    uint32_t n_layer_kv_from_start; /* later layers use keys and values of these; 0: the key
                                       attention.shared_kv_layers decides */
    uint32_t full_indexer_context;  /* longest context of models in which each layer has an indexer
                                       by default; 0: no limit */
    enum gguf_blocks blocks;
    struct gguf_big_model big;
    const char *pretokenizer; /* of files without tokenizer.ggml.pre; NULL: not known */
};

/* Return the row of a name, or the row that its `same_as` names. NULL if the name is unknown. */
const struct gguf_architecture *gguf_architecture_find(const char *name);

/* Return row `index` as it is written, for lists of names; NULL after the last. */
const struct gguf_architecture *gguf_architecture_at(size_t index);

/* Return true if the model has the size that .big describes. */
bool gguf_architecture_is_big(const struct gguf_architecture *architecture, uint32_t n_layer,
                              uint32_t n_expert);

/* Return true if the layer has a window; `period` comes from a key or the row. */
bool gguf_is_windowed(const struct gguf_architecture *architecture, uint32_t layer,
                      uint32_t period);
