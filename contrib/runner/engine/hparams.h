/*
 * The hyperparameters of a model: the metadata that its architecture uses. All numbers are limited
 * so that their products cannot overflow.
 */
#pragma once

#include "contrib/runner/compute/top_k.h"
#include "contrib/runner/engine/architectures.h"
#include "contrib/runner/tree/metadata.h"
#include "gguf/support/limits.h"
#include "gguf/models/layer_shapes.h"

struct run_experts_shape {
    uint32_t n, n_used;               /* 0: no experts */
    uint32_t n_groups, n_groups_used; /* n_groups <= 1: no groups */
    enum run_gating gating;
    bool weights_normed;
    float weights_scale;          /* 1: none */
    uint32_t n_chunks, per_chunk; /* see struct run_experts; 0: none */
    float chunk_scale;
};

struct run_hparams {
    const struct run_architecture *architecture;
    const struct gguf_architecture *model; /* its lists of tensors and keys */
    const char *name;                      /* general.architecture, of the metadata */
    bool is_big;                           /* gguf_architecture_is_big() */

    uint32_t n_layer, n_embd;
    uint32_t n_context; /* the context the model was trained for; 0 if unknown */
    uint32_t n_nextn;   /* layers after n_layer that predict further tokens */
    uint32_t n_stored;  /* layers in the file: layer i uses the tensors of i % n_stored */
    bool has_loop_norm; /* the output norm is also applied between repetitions of the layers */
    bool is_parallel;   /* as enum run_layer_rules says */
    struct gguf_layer_shape *layers; /* [n_layer + n_nextn] */

    enum run_norm_kind norm_kind; /* of all norms that have no kind of their own */
    float norm_epsilon;
    bool has_swin_norm; /* norms follow attention and feed-forward */
    bool qk_plain_norm; /* see RUN_QK_PLAIN_NORM */

    float embedding_scale, residual_scale, logit_scale; /* 1: none */
    float attention_softcap, final_softcap;             /* 0: none */

    /* Attention. */
    uint32_t n_head;       /* of the first layer that has any */
    uint32_t dim_k, dim_v; /* of a head's keys and values, in layers without window */
    uint32_t n_rot, n_rot_windowed;
    uint32_t window;       /* 0: none */
    float attention_scale; /* multiplies scores */
    float value_scale;     /* multiplies the result of attention; 1: none */
    float clamp_kqv;       /* 0: none */
    float max_alibi;       /* 0: none */
    bool qkv_in_groups;    /* rows of attn_qkv are, per key head: its queries, the key, the value */
    float temperature_scale; /* of queries; 0: none */
    uint32_t temperature_length;
    bool temperature_of_unrotated; /* scale the queries of layers that are not rotated, if there
                                      are any, else of all layers */
    struct run_index indexer;      /* n_heads 0: attention is not sparse */

    /* Latent attention. */
    uint32_t latent_rank;        /* attention.kv_lora_rank; 0: none */
    uint32_t latent_k, latent_v; /* widths of a head's key and value after decompression */
    float latent_scale;          /* replaces attention_scale */

    /* Feed-forward. */
    struct run_experts_shape experts;
    struct run_xielu *xielu; /* [n_layer], or NULL */

    /* Recurrent mixers. */
    uint32_t ssm_groups;       /* groups of heads that share keys (b and c in Mamba 2); or 0 */
    bool ssm_norms;            /* Mamba's steps, b and c get an RMS norm without weights */
    uint32_t rwkv_version;     /* 4 to 7; 0: no RWKV */
    uint32_t wkv_head_size;    /* from RWKV 5 on; divides n_embd */
    uint32_t rescaling_period; /* x is halved after every so many layers; 0: never */

    /* Known once the tensors outside the layers are loaded. */
    uint64_t n_per_layer; /* width of a per-layer embedding, see per_layer.h; 0: none */
    uint32_t n_streams;   /* of the residual, see altup.h; usually 1 */
};

/*
 * Reads the metadata. Returns 0, -ENOTSUP for an unknown architecture, -ENOENT for a missing key or
 * -EINVAL for a wrong one; then there is nothing to free.
 */
int run_hparams_read(const struct run_metadata *metadata, struct run_hparams *hparams,
                     struct run_failure *failure);
void run_hparams_free(struct run_hparams *hparams);

/*
 * Fill in the rotation of the layers with or without a window. The caller adds scaling->factors
 * from a tensor: the long factors if the context in use is longer than scaling->n_original, else
 * the short factors.
 */
int run_hparams_rotary(const struct run_hparams *hparams, const struct run_metadata *metadata,
                       bool is_windowed, struct run_rotary *rotary,
                       struct run_rotary_scaling *scaling, struct run_failure *failure);
