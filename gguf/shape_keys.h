/* Checks the keys with the numbers of layers and heads against the tensors. */
#ifndef GGUFS_GGUF_SHAPE_KEYS_H
#define GGUFS_GGUF_SHAPE_KEYS_H

#include "gguf/model.h"

/*
 * Warn of a block_count that is not the number of layers in the names of tensors, and of numbers of
 * heads that do not divide the widths. A model without tensors, and a key with a number for each
 * layer, are not checked.
 */
void gguf_check_shape_keys(const struct gguf_model *model, struct gguf_report *report);

#endif
