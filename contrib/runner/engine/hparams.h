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
    bool is_windowed;
    bool is_rotated;
};

struct run_experts_shape {
    uint32_t n, n_used;               /* 0: no experts */
    uint32_t n_groups, n_groups_used; /* n_groups <= 1: not in groups */
    enum run_gating gating;
    bool weights_normed;
    float weights_scale; /* 1: none */
};

struct run_hparams {
    const struct run_architecture *architecture;
    uint32_t n_layer, n_embd;
    uint32_t n_context;    /* that the model was trained for; 0 if unknown */
    uint32_t dim_k, dim_v; /* of a head's keys and values */
    uint32_t n_rot;
    float norm_epsilon;
    bool is_parallel;
    float embedding_scale, residual_scale, logit_scale;
    float attention_softcap, final_softcap; /* 0: none */
    float attention_scale;
    float clamp_kqv;    /* 0: none */
    float max_alibi;    /* 0: none */
    uint32_t window;    /* 0: none */
    bool norms_rotated; /* q and k of rotated layers get a norm without weights behind the rotation
                         */
    struct run_experts_shape experts;
    uint32_t latent_rank;        /* of keys and values (DeepSeek 2); 0: no latent attention */
    uint32_t latent_k, latent_v; /* a head's widths behind decompression */
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
 * How the windowed or the other layers rotate. `n_in_use` is the length of the context that will be
 * used, which decides between long and short factors; the factors are for the caller to fill in.
 */
int run_hparams_rotary(const struct run_hparams *hparams, const struct run_metadata *metadata,
                       bool is_windowed, struct run_rotary *rotary,
                       struct run_rotary_scaling *scaling, struct run_failure *failure);

#endif
