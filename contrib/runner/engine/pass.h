/* A pass of a batch of tokens through the layers, and memory for intermediate results. */
#pragma once

#include "contrib/runner/compute/kv_cache.h"
#include "contrib/runner/engine/hparams.h"

#include <setjmp.h>

/* A stack allocator: memory is released up to a mark, and returned to the system only by
 * run_scratch_free(). */
struct run_scratch {
    struct run_scratch_block *first, *current;
    size_t used;            /* bytes of the current block */
    jmp_buf *out_of_memory; /* where the pass ends then */
};

/* End the pass: return to the setjmp() of scratch->out_of_memory. */
_Noreturn void run_scratch_fail(const struct run_scratch *scratch);

/* Return n uninitialized floats. Does not return if out of memory. */
float *run_scratch_take(struct run_scratch *scratch, size_t n);

/* run_scratch_release() releases everything that was taken after the mark. */
struct run_scratch_mark {
    struct run_scratch_block *block;
    size_t used;
};
struct run_scratch_mark run_scratch_mark(const struct run_scratch *scratch);
void run_scratch_release(struct run_scratch *scratch, struct run_scratch_mark mark);
void run_scratch_free(struct run_scratch *scratch);

struct run_pass {
    const struct run_hparams *hparams;
    struct run_scratch *scratch;
    const struct run_rotary *rotary; /* [2]: layers without a window, layers with one */
    size_t n;                        /* tokens of this batch */
    size_t first;                    /* position of the first */
    const int32_t *tokens;           /* [n] */
    bool is_draft; /* the last tokens may be forgotten: recurrent mixers keep what that needs */
    float *first_values; /* [n][n_embd]: RWKV 7's values of the first layer, which the others use */
    const float *embeddings;         /* [n][n_embd]; only with RUN_SCALES_EMBEDDINGS */
    struct run_selection *selection; /* made by the last indexer */
    const float *per_layer; /* [n][n_layer][n_per_layer]; NULL without per-layer embeddings */
};

/* Store the keys or values of the pass's tokens, without gaps, in a cache. */
void run_pass_store(const struct run_pass *pass, struct run_cache *cache, const float *rows);
