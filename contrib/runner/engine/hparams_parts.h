/* Declarations shared by the files that implement run_hparams_read(). */
#pragma once

#include "contrib/runner/engine/hparams.h"
#include "contrib/runner/engine/key_reader.h"
#include "gguf/models/layer_shapes.h"

/* Larger than in any known model. */
enum {
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = GGUF_MAX_HEADS,
    MAX_HEAD_WIDTH = GGUF_MAX_HEAD_WIDTH,
    MAX_EXPERTS = 1 << 16,
};

/*
 * Return true if the file's tensors are in the order of the original checkpoint and the row gives
 * that order the meaning `meaning`.
 */
bool run_has_reference(const struct run_key_reader *reader, const struct run_architecture *row,
                       enum run_attention_rules meaning);

static inline bool run_has_big_alibi(const struct run_hparams *hparams)
{
    return hparams->is_big && hparams->architecture->attention & RUN_BIG_ALIBI;
}

/* Return the number of hparams->layers. */
static inline uint32_t run_hparams_n_shapes(const struct run_hparams *hparams)
{
    return hparams->n_layer + hparams->n_nextn;
}

/* Reads heads, windows and scales, after the sizes, n_layer and the heads of the layers. */
void run_hparams_read_attention(struct run_key_reader *reader, struct run_hparams *hparams);
