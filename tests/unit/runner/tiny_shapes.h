/* The shapes of the tensors of tiny models, see tiny_models.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TINY_N_VOCAB = 24, TINY_N_LAYER = 2 };

/* Architectures with as many heads of keys as of queries, and with a fused product of both. NULL
 * ends the lists. */
extern const char *const tiny_many_keys[], *const tiny_fused[];
bool tiny_is_in(const char *const list[], const char *name);

/* Compare an architecture with a pattern: a name, or its beginning if it ends in '*'; NULL: any. */
bool tiny_is_of(const char *architecture, const char *pattern);

/* Set the dimensions of a tensor, whose name has no ".weight". Unused ones stay as they are. */
void tiny_set_shape(const char *architecture, const char *name, uint64_t ne[4]);
