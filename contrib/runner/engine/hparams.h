/*
 * The numbers of a model, read from its metadata as far as its architecture uses them. All are
 * within limits that keep their products far from overflow.
 */
#ifndef GGUFS_RUNNER_HPARAMS_H
#define GGUFS_RUNNER_HPARAMS_H

#include "contrib/runner/engine/architectures.h"
#include "contrib/runner/tree/metadata.h"

/* What may differ from layer to layer. */
struct run_layer_shape {
    uint32_t n_head, n_head_kv; /* 0: no attention in this layer */
    uint32_t n_ff;
    uint32_t dim_k, dim_v; /* of a head's keys and values */
    bool shares_kv;        /* it has no keys and values of its own, but uses those of kv_layer */
    uint32_t kv_layer;
    bool is_windowed;
    bool is_rotated;
    float sparsity;   /* of gates, see run_leave_highest(); 0: none */
    bool has_indexer; /* if tensors of one are there; else sparse attention follows the last one */
    float clamp_experts, clamp; /* of activations, see run_activate_gated_within(); 0: none */
};

struct run_experts_shape {
    uint32_t n, n_used;               /* 0: no experts */
    uint32_t n_groups, n_groups_used; /* n_groups <= 1: not in groups */
    enum run_gating gating;
    bool weights_normed;
    float weights_scale;          /* 1: none */
    uint32_t n_chunks, per_chunk; /* see struct run_experts; 0: none */
    float chunk_scale;
};

/* Of sparse attention, see indexer.h. */
struct run_indexer_shape {
    uint32_t n_heads, width; /* n_heads 0: attention is not sparse */
    uint32_t n_best, block, n_local_blocks;
};

struct run_hparams {
    const struct run_architecture *architecture;
    const struct run_variant *variant; /* never NULL: of most models it changes nothing */
    uint32_t n_layer, n_embd;
    uint32_t n_stored;     /* layers that have tensors: layer i those of i % n_stored */
    bool has_loop_norm;    /* the output's norm is applied whenever they have been gone through */
    uint32_t n_context;    /* that the model was trained for; 0 if unknown */
    uint32_t dim_k, dim_v; /* of a head's keys and values, in layers without window */
    uint32_t n_rot, n_rot_windowed;
    float norm_epsilon;
    bool is_parallel;
    bool has_swin_norm; /* norms are behind attention and feed-forward */
    float embedding_scale, residual_scale, logit_scale;
    float attention_softcap, final_softcap; /* 0: none */
    float attention_scale;
    float value_scale;       /* 1: none */
    float temperature_scale; /* 0: none; see the row's */
    uint32_t temperature_length, temperature_offset;
    bool temperature_in_rotated; /* also in layers that are rotated */
    float clamp_kqv;             /* 0: none */
    float max_alibi;             /* 0: none */
    uint32_t window;             /* 0: none */
    bool qk_plain_norm; /* q and k of rotated layers get a norm without weights after the rotation
                         */
    struct run_experts_shape experts;
    struct run_indexer_shape indexer;
    uint64_t n_per_layer; /* width of what a layer gets of each token, see per_layer.h; 0: none.
                             Tensors tell, so this is set behind run_hparams_read() */
    uint32_t n_streams;   /* see altup.h; 1: plain. Set as n_per_layer */
    uint32_t latent_rank; /* of keys and values (DeepSeek 2); 0: no latent attention */
    uint32_t latent_k, latent_v; /* a head's widths behind decompression */
    float latent_scale;          /* in the place of attention_scale */
    bool
        qkv_in_groups; /* rows of attn_qkv: for each head of keys its queries, the key, the value */
    uint32_t ssm_groups; /* heads of recurrent mixers that share keys (b and c in Mamba 2); or 0 */
    bool ssm_norms;      /* Mamba's steps, b and c are normalized even without weights for that */
    struct run_xielu *xielu;        /* [n_layer], or NULL */
    uint32_t rwkv_version;          /* 4 to 7; 0: no RWKV */
    uint32_t wkv_head_size;         /* since RWKV 5; divides n_embd */
    uint32_t rescaling_period;      /* behind so many layers everything is halved; 0: never */
    struct run_layer_shape *layers; /* [n_layer] */
};

int run_hparams_read(const struct run_metadata *metadata, struct run_hparams *hparams,
                     struct run_failure *failure);
void run_hparams_free(struct run_hparams *hparams);

/*
 * How the windowed or the other layers rotate. The factors, a tensor's, are for the caller to fill
 * in: long ones if the context that will be used is longer than scaling->n_original, else short
 * ones.
 */
int run_hparams_rotary(const struct run_hparams *hparams, const struct run_metadata *metadata,
                       bool is_windowed, struct run_rotary *rotary,
                       struct run_rotary_scaling *scaling, struct run_failure *failure);

#endif
