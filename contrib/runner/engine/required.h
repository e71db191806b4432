/*
 * Checks that the model is complete: it has the tensors that gguf/models/ lists, and all layers of
 * a kind have the same tensors. The loader chooses computations by the tensors that exist, so
 * without these checks a missing tensor would silently change results.
 */
#ifndef GGUFS_RUNNER_REQUIRED_H
#define GGUFS_RUNNER_REQUIRED_H

#include "contrib/runner/engine/layer.h"

/*
 * Fail with -ENOENT if a tensor outside of layers is missing, or one of layer `index`. The message
 * names it and the rule.
 */
void run_require_ends(struct run_loader *loader, const struct run_hparams *hparams);
void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams,
                       uint32_t index);

/* The kinds of layers seen so far, with the tensors of the first layer of each. */
struct run_layer_kinds {
    struct run_layer_kind *list;
    size_t n, room;
};

/*
 * Compare loader->used, the tensors that layer `index` reads, with the first layer of the same kind
 * (same mixers, feed-forward, window and sharing of keys and values). Fails with -ENOENT if one of
 * the layers has a tensor that the other lacks. Takes over the names.
 */
void run_layer_kinds_check(struct run_layer_kinds *kinds, struct run_loader *loader,
                           const struct run_hparams *hparams, uint32_t index,
                           const struct run_layer *layer);
void run_layer_kinds_free(struct run_layer_kinds *kinds);

#endif
