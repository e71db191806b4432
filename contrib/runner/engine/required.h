/*
 * What must be there: the tensors that a row of the table of architectures lists, and the same
 * tensors in all layers of a kind. Without this, a tensor that is missing would change results
 * silently, since pieces are chosen by the tensors that are there.
 */
#ifndef GGUFS_RUNNER_REQUIRED_H
#define GGUFS_RUNNER_REQUIRED_H

#include "contrib/runner/engine/layer.h"

/* Fails with -ENOENT if one of these tensors is missing below loader->prefix. `names` is as in
 * struct run_required_tensors, or NULL. */
void run_require(struct run_loader *loader, const struct run_hparams *hparams, const char *names);

/* The same for what the row requires of a loaded layer. */
void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams,
                       const struct run_layer *layer);

/* The kinds of layers that were seen so far, with the tensors of the first layer of each. */
struct run_layer_kinds {
    struct run_layer_kind *list;
    size_t n, room;
};

/*
 * Compares loader->used, the tensors that layer `index` reads, with those of the first layer of its
 * kind: with the same mixers, feed-forward, window and sharing of keys and values. Fails with
 * -ENOENT if one of the two has a tensor that the other has not. Takes the names away.
 */
void run_layer_kinds_check(struct run_layer_kinds *kinds, struct run_loader *loader,
                           const struct run_hparams *hparams, uint32_t index,
                           const struct run_layer *layer);
void run_layer_kinds_free(struct run_layer_kinds *kinds);

#endif
