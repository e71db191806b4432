/* The tensors of the tree: their infos, and their bytes mapped into memory. */
#pragma once

#include "contrib/runner/compute/tensor.h"
#include "contrib/runner/tree/metadata.h"

struct run_weights;

/*
 * Read tensors.json below the directory `tree_fd`, which must stay open. `is_private` is true for a
 * mount that the caller made and has detached already; see run_model_files_trust().
 */
int run_weights_open(int tree_fd, bool is_private, struct run_weights **out,
                     struct run_failure *failure);

/* Unmaps all tensors. */
void run_weights_close(struct run_weights *weights);

/*
 * Return name number `index` of the tensors in the tree, in GGUF if they have one there, from 0 on;
 * NULL past the last one. A name may come twice.
 */
const char *run_weights_name(const struct run_weights *weights, size_t index);

/* Return true if the tree has a tensor of that name. */
bool run_weights_has(const struct run_weights *weights, const char *name);

/* Return the first name that begins with `start`, or NULL. It belongs to `weights`. */
const char *run_weights_starting(const struct run_weights *weights, const char *start);

/*
 * Maps the bytes of a tensor: in the model file if it is the mounted file, so that its pages are in
 * memory once, or else `raw` of the tree. -ENOENT if the tensor is missing, -EINVAL if the list and
 * raw do not fit together, -ENOTSUP for a type without decoder, -EIO if the end of its data cannot
 * be read; the failure then counts all unreadable tensors of the tree. One thread at a time.
 */
int run_weights_get(struct run_weights *weights, const char *name, struct run_tensor *out,
                    struct run_failure *failure);

/* Return true if the tensor exists and run_weights_get() was called for it. */
bool run_weights_is_used(const struct run_weights *weights, const char *name);

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
 * Return the tensor that was mapped as number `index`, from 0 on; NULL past the last one. Its bytes
 * need not begin at a page.
 */
const struct run_tensor *run_weights_mapping(const struct run_weights *weights, size_t index);

/* Return the name of the tensor whose mapping contains the address, or NULL. Async-signal-safe. */
const char *run_weights_name_at(const struct run_weights *weights, const void *address);

/* A model's tree: its metadata and its weights, from a mount of ggufs or a copy of one. */
struct run_tree {
    int fd; /* of the directory */
    struct run_metadata *metadata;
    struct run_weights *weights;
};

void run_tree_close(struct run_tree *tree);
