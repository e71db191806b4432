/*
 * The parts of run_hparams_read(), for the files that have them, and the limits that they share.
 */
#ifndef GGUFS_RUNNER_HPARAMS_PARTS_H
#define GGUFS_RUNNER_HPARAMS_PARTS_H

#include "contrib/runner/engine/hparams.h"
#include "contrib/runner/engine/key_reader.h"

/* Above what any model has. */
enum {
    MAX_LAYERS = 4096,
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = 1 << 14,
    MAX_HEAD_WIDTH = 1 << 16,
    MAX_EXPERTS = 1 << 16,
};

/* Whether the file's tensors are in the order of the original model, and this is what that means.
 */
bool run_has_reference(const struct run_metadata *metadata, const struct run_architecture *row,
                       enum run_reference_layout meaning);

/* Heads, windows and scales; sizes, n_layer and the heads of layers have been read. */
void run_hparams_read_attention(struct run_key_reader *reader, struct run_hparams *hparams);

#endif
