/*
 * The tensors of the tree: their infos, and their bytes mapped into memory.
 */
#ifndef GGUFS_RUNNER_WEIGHTS_H
#define GGUFS_RUNNER_WEIGHTS_H

#include "contrib/runner/tree/failure.h"
#include "dequant/types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RUN_MAX_DIMS 4

/*
 * A tensor, or rows of one. ne[0] elements make a row, ne[0] is a multiple of the type's block;
 * dimensions that are not there are 1. No dimension is 0. Small and without ownership: copy it.
 */
struct run_tensor {
    const char *name; /* kept by the weights */
    const struct dequant_type *type;
    uint64_t ne[RUN_MAX_DIMS];
    const uint8_t *data; /* mapped: reading it may take as long as reading the file does */
    uint32_t first_row;  /* row 0 is this one of the data, whose rows may be stored in groups */
};

struct run_weights;

/* Lists the directory tensors/ below the directory `tree_fd`, which must stay open. */
int run_weights_open(int tree_fd, struct run_weights **out, struct run_failure *failure);

/* Unmaps all tensors. */
void run_weights_close(struct run_weights *weights);

/* The number of tensors in the tree. */
size_t run_weights_count(const struct run_weights *weights);

/* Whether the tree has a tensor of that name. */
bool run_weights_has(const struct run_weights *weights, const char *name);

/*
 * Reads the info of a tensor and maps it. -ENOENT if there is none, -EINVAL if info and raw do not
 * fit together, -ENOTSUP for a type without decoder. One thread at a time.
 */
int run_weights_get(struct run_weights *weights, const char *name, struct run_tensor *out,
                    struct run_failure *failure);

/* The sum of the bytes that are mapped. */
uint64_t run_weights_mapped_bytes(const struct run_weights *weights);

/* Mapping `index` of those made so far, in their order; false behind the last. */
bool run_weights_mapping(const struct run_weights *weights, size_t index, const uint8_t **data,
                         uint64_t *n_bytes);

/* The name of the tensor in whose mapping the address lies, or NULL; safe in a signal handler. */
const char *run_weights_name_at(const struct run_weights *weights, const void *address);

/* The number of rows. */
uint64_t run_tensor_rows(const struct run_tensor *tensor);

/* `n` rows from row `first` on, as a matrix. They must be within the tensor. */
struct run_tensor run_tensor_slice(const struct run_tensor *tensor, uint64_t first, uint64_t n);

/* Decodes n elements from `first` on of row `row`; both are multiples of the type's block. */
void run_tensor_decode(const struct run_tensor *tensor, uint64_t row, uint64_t first, uint64_t n,
                       float *out);

/* Decodes row `row` to ne[0] floats. */
void run_tensor_decode_row(const struct run_tensor *tensor, uint64_t row, float *out);

#endif
