/*
 * The indexer of sparse attention: a small attention whose scores select the tokens that the main
 * attention attends to (DeepSeek 3.2, MiniMax M3).
 */
#pragma once

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

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
