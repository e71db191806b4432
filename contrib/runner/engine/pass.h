/*
 * What the parts of a layer need to know of the batch they compute, and memory for what they
 * compute.
 */
#ifndef GGUFS_RUNNER_PASS_H
#define GGUFS_RUNNER_PASS_H

#include "contrib/runner/engine/hparams.h"

/* Memory that is taken piece by piece and given back all at once, without going back to the system.
 */
struct run_scratch {
    struct run_scratch_block *first, *current;
    size_t used; /* bytes of the current block */
};

/* n floats, or NULL. Contents are undefined. */
float *run_scratch_take(struct run_scratch *scratch, size_t n);

/* Everything that is taken after the mark can be given back. */
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
    const struct run_rotary *rotary; /* [2]: of layers without and with a window */
    size_t n;                        /* tokens of this batch */
    size_t first;                    /* position of the first */
    const int32_t *tokens;           /* [n] */
    float *first_values; /* [n][n_embd] that the first layer of RWKV 7 leaves to those behind it */
};

#endif
