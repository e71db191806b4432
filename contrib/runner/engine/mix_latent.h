/*
 * Multi-head latent attention (MLA, DeepSeek 2, 2024): keys and values of all heads are
 * decompressed from a narrow row per token.
 */
#pragma once

#include "contrib/runner/engine/indexer.h"
#include "contrib/runner/engine/mixer.h"

struct run_latent_layer {
    const struct gguf_layer_shape *shape;
    struct run_attention attention;
    uint32_t plain;             /* elements of a head's query and key that are not rotated */
    struct run_linear q;        /* [n_embd] to [n_head][latent_k], or … */
    struct run_linear q_a, q_b; /* … through a narrower row */
    struct run_norm_layer q_a_norm, kv_a_norm;
    struct run_linear kv_a; /* [n_embd] to the compressed row and the rotated part of all keys */
    struct run_linear kv_b; /* decompression of [n_head][plain + latent_v], or … */
    struct run_linear k_b,
        v_b; /* … a matrix for each head: [plain] to [rank], [rank] to [latent_v]:
                attention is then on the compressed rows themselves */
    struct run_linear output;
    struct run_indexer indexer;
    bool is_sparse;                /* uses the selection of its indexer, or of an earlier layer's */
    struct run_cache keys, values; /* values: not with k_b, v_b */
};

extern const struct run_mixer_ops run_latent_mixer;
