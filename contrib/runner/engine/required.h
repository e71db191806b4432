/*
 * Checks that the model has the tensors that gguf/models/ lists, that it uses all of them, and that
 * all layers of a kind have the same tensors. The loader chooses computations by the tensors that
 * exist, so without these checks a missing tensor, or one too many, would silently change results.
 */
#pragma once

#include "contrib/runner/engine/hparams.h"
#include "contrib/runner/engine/loader.h"

/*
 * Fail with -ENOENT if a tensor outside of layers is missing, or one of layer `index`, and with
 * -EINVAL if there are more layers than the metadata say. The message names the tensor and the
 * rule.
 */
void run_require_ends(struct run_loader *loader, const struct run_hparams *hparams);
void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams,
                       uint32_t index);

/* 1 + the index of the first layer of each kind; 0: none so far. */
struct run_layer_kinds {
    uint32_t first[256];
};

/*
 * Check layer `index` after it was loaded: fail with -EINVAL if it has a listed tensor that was not
 * loaded, and with -ENOENT if it lacks a tensor that the first layer of its kind has, or the other
 * way round. Layers of a kind have the same parts: heads, experts, a window and so on.
 */
void run_check_layer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                     struct run_layer_kinds *kinds);
