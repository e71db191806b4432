/* The tensors of the tree: their infos, and their bytes mapped into memory. */
#ifndef GGUFS_RUNNER_WEIGHTS_H
#define GGUFS_RUNNER_WEIGHTS_H

#include "contrib/runner/compute/tensor.h"
#include "contrib/runner/tree/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_weights;

/*
 * Lists the directory tensors/ below the directory `tree_fd`, which must stay open. -ENOENT if a
 * tensor that tensors.json names is not there.
 */
int run_weights_open(int tree_fd, struct run_weights **out, struct run_failure *failure);

/* Unmaps all tensors. */
void run_weights_close(struct run_weights *weights);

/* The number of tensors in the tree. */
size_t run_weights_count(const struct run_weights *weights);

/* Return true if the tree has a tensor of that name. */
bool run_weights_has(const struct run_weights *weights, const char *name);

/*
 * Reads the info of a tensor and maps its bytes: in the model file if that is the one of the mount,
 * so that its pages are in memory once, or else `raw` of the tree. -ENOENT if there is none,
 * -EINVAL if info and raw do not fit together, -ENOTSUP for a type without decoder, -EIO if the end
 * of its data cannot be read; that failure counts such tensors in the whole tree. One thread at a
 * time.
 */
int run_weights_get(struct run_weights *weights, const char *name, struct run_tensor *out,
                    struct run_failure *failure);

/*
 * Return the number of tensors for which run_weights_get() was not called, and store the names of
 * the first n_names of them, which the weights own.
 */
size_t run_weights_unused(const struct run_weights *weights, const char *names[], size_t n_names);

/*
 * Check that the model files have not changed since the opening, except for times and tensor data;
 * -EIO otherwise. Cheap; works in a confined process. Pages that cannot be read raise SIGBUS.
 */
int run_weights_check(struct run_weights *weights, struct run_failure *failure);

/* Return the sum of the mapped bytes. */
uint64_t run_weights_mapped_bytes(const struct run_weights *weights);

/*
 * Get the bytes of the tensor that was mapped as number `index`, from 0 on. They need not begin at
 * a page. Returns false past the last one.
 */
bool run_weights_mapping(const struct run_weights *weights, size_t index, const uint8_t **data,
                         uint64_t *n_bytes);

/* Return the name of the tensor whose mapping contains the address, or NULL. Async-signal-safe. */
const char *run_weights_name_at(const struct run_weights *weights, const void *address);

#endif
