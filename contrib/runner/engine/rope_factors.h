/* The tensors that change the frequencies of rotations. */
#ifndef GGUFS_RUNNER_ROPE_FACTORS_H
#define GGUFS_RUNNER_ROPE_FACTORS_H

#include "contrib/runner/engine/hparams.h"
#include "contrib/runner/engine/loader.h"

/*
 * Return the divisors of the frequencies of n_rot rotated elements, or NULL if there are none: one
 * tensor for all lengths, or one for short and one for long contexts. If windowed layers rotate
 * more elements than the others, the others use the first divisors only. Changes loader->prefix.
 */
const float *run_load_rope_factors(struct run_loader *loader, const struct run_hparams *hparams,
                                   bool is_long, uint32_t n_rot);

#endif
