/* The attention of a layer: projections, norms and rotation around compute/attend.h. */
#pragma once

#include "contrib/runner/engine/mixer.h"

/* Make a cache for `width` elements of a token, in heads of `dim`. */
void run_attention_cache(struct run_loader *loader, const struct run_mixer_place *place,
                         uint64_t width, uint32_t dim, struct run_cache *cache);

/*
 * Multiply the queries q, [n][width], by a factor that grows with their position, if the
 * architecture does so in this layer; see temperature_scale in struct run_hparams.
 */
void run_scale_queries_by_position(const struct run_pass *pass,
                                   const struct gguf_layer_shape *shape, float *q, size_t width);

/*
 * The indexer of sparse attention: a small attention whose scores select the tokens that the main
 * attention attends to (DeepSeek 3.2, MiniMax M3).
 */
struct run_indexer {
    struct run_linear q;       /* to [n_heads][width]; weight.data NULL: the layer has no indexer */
    struct run_linear k;       /* [n_embd] to [width] */
    struct run_linear weights; /* [n_embd] to [n_heads]; not with blocks */
    struct run_norm_layer q_norm, k_norm;
    struct run_cache keys;
};

/*
 * Load the indexer of a layer with shape.has_indexer. If its tensors are missing, the loader fails
 * if the indexer is_required; else *indexer stays empty. `q_in` is the width of the input of
 * queries, n_head_kv the number of key heads.
 */
void run_indexer_load(struct run_loader *loader, const struct run_hparams *hparams,
                      const struct gguf_layer_shape *shape, bool is_required, uint64_t q_in,
                      uint32_t n_head_kv, struct run_indexer *indexer);

/* Fill in pass->selection for the pass's tokens from x, [n][n_embd], and the input of queries,
 * `q_from`. */
void run_indexer_apply(struct run_indexer *indexer, const struct run_pass *pass, const float *x,
                       const float *q_from);
