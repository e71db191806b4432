/*
 * Alternating updates (Baykal et al. 2023) as Gemma 3n has them: the residual is several streams of
 * which each layer works on the first. What becomes of the others is predicted before, and
 * corrected by what the layer did.
 */
#ifndef GGUFS_RUNNER_ALTUP_H
#define GGUFS_RUNNER_ALTUP_H

#include "contrib/runner/engine/loader.h"
#include "contrib/runner/engine/pass.h"

/* Without in.weight.data there is one stream. */
struct run_altup_ends {
    struct run_linear in, out; /* a matrix [n_embd] to [n_embd] for each stream but the first */
};

/* Without router.weight.data there is none. */
struct run_altup {
    struct run_norm_layer router_norm;
    struct run_linear router;           /* [n_embd] to [n_streams] */
    struct run_linear predict, correct; /* [n_streams] to a square of it, to as many */
    const float *scale; /* [n_embd]: of the first stream before the layer's embedding reads it */
};

/* Sets hparams->n_streams. */
void run_altup_load_ends(struct run_loader *loader, struct run_hparams *hparams,
                         struct run_altup_ends *ends);
void run_altup_load(struct run_loader *loader, const struct run_hparams *hparams,
                    struct run_altup *altup);

/*
 * Streams are [n_streams][n][n_embd]. The first makes the others of the first one; the last makes
 * the first one of all. All but the first return 0 or -ENOMEM.
 */
void run_altup_begin(const struct run_altup_ends *ends, const struct run_pass *pass,
                     float *streams);
int run_altup_end(const struct run_altup_ends *ends, const struct run_pass *pass, float *streams);

/* What streams become if the layer does nothing: predictions = streams of the same size. */
int run_altup_predict(const struct run_altup *altup, const struct run_pass *pass,
                      const float *streams, float *predictions);

/* streams = predictions corrected by `active`, [n][n_embd], which the layer made of the first. */
int run_altup_correct(const struct run_altup *altup, const struct run_pass *pass,
                      const float *predictions, const float *active, float *streams);

#endif
