/*
 * Checks for required tensors: those listed in the row of the architecture, and the same tensors in
 * all layers of a kind. The loader chooses computations by the tensors that exist, so without these
 * checks a missing tensor would silently change results.
 */
#ifndef GGUFS_RUNNER_REQUIRED_H
#define GGUFS_RUNNER_REQUIRED_H

#include "contrib/runner/engine/layer.h"

/*
 * Fail with -ENOENT if one of these tensors is missing below loader->prefix. `names` is as in
 * struct run_required_tensors, or NULL.
 */
void run_require(struct run_loader *loader, const struct run_hparams *hparams, const char *names);

/* The same for the tensors that the row requires of a loaded layer. */
void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams,
                       const struct run_layer *layer);

/* The kinds of layers seen so far, with the tensors of the first layer of each. */
struct run_layer_kinds {
    struct run_layer_kind *list;
    size_t n, room;
};

/*
 * Compare loader->used, the tensors that layer `index` reads, with those of the first layer of its
 * kind, that is, with the same mixers, feed-forward, window and sharing of keys and values. Fails
 * with -ENOENT if one of the two has a tensor that the other lacks. Takes over the names.
 */
void run_layer_kinds_check(struct run_layer_kinds *kinds, struct run_loader *loader,
                           const struct run_hparams *hparams, uint32_t index,
                           const struct run_layer *layer);
void run_layer_kinds_free(struct run_layer_kinds *kinds);

#endif
