/* The steps of gguf/surgery.h. */
#pragma once

#include "gguf/compose.h"
#include "gguf/models/tensor_names.h"
#include "gguf/surgery.h"

struct gguf_work {
    struct gguf_composition made;
    uint32_t n_blocks;  /* that --layers has put together … */
    size_t after_them;  /* … and the index of the item behind them */
    uint64_t n_experts; /* that --experts keeps; 0: as in the base */
};

/* Return the number of blocks: one more than the last. */
uint32_t gguf_count_blocks(const struct gguf_model *model);

/* The steps, one of each kind. */
typedef void gguf_do_step(struct gguf_work *work, const struct gguf_step *step);
gguf_do_step gguf_do_layers, gguf_do_experts, gguf_do_drop, gguf_do_add, gguf_do_rename,
    gguf_do_fuse, gguf_do_unfuse, gguf_do_small_first;

/*
 * Warn if a block has not the names of a block of the base, unless all blocks are the base's and
 * have others. Layers at the end that predict further tokens are of their own kind.
 */
void gguf_warn_of_names(struct gguf_composition *made);

/* Set the keys that follow from the tensors; n_experts: in each block, 0 if it is as in the base.
 */
void gguf_set_following_keys(struct gguf_composition *made, uint64_t n_experts);
