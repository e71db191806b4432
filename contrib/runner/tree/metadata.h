/*
 * The metadata of the model, from the file metadata.json of its tree, which has a line for each
 * key. Values are read when they are asked for. Call all functions from one thread at a time.
 */
#pragma once

#include "contrib/runner/tree/failure.h"
#include "contrib/runner/tree/tree_files.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_metadata;

/*
 * Read the metadata of the tree whose directory is `tree_fd`. Returns 0; or with *out NULL: -EINVAL
 * if the file is cut or a key has two values, -EFBIG for more than GGUF_MAX_KEYS keys or 1 GiB, or
 * another negative errno.
 */
int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure);
void run_metadata_close(struct run_metadata *metadata);

/*
 * End the loading of the model, whose result is `code`. Returns the failure of a value that could
 * not be read, which functions without a failure take for missing; else `code`. If that is 0, the
 * file is closed: only values that were read before can be read again.
 */
int run_metadata_finish(struct run_metadata *metadata, int code, struct run_failure *failure);

/* The value of general.architecture, or "" if the key is missing. */
const char *run_metadata_architecture(const struct run_metadata *metadata);

/*
 * In all functions below, a key that begins with a dot belongs to the architecture: ".block_count"
 * is "llama.block_count" for llama.
 */

/* Return true if the key exists. */
bool run_metadata_has(const struct run_metadata *metadata, const char *key);

/* Return true if a key begins with `prefix`. */
bool run_metadata_has_group(const struct run_metadata *metadata, const char *prefix);

/* The string, owned by the metadata; NULL if the key is missing or not a string. */
const char *run_metadata_string(const struct run_metadata *metadata, const char *key);

/* Return true if the key is true; `otherwise` if it is missing. */
bool run_metadata_is_true(const struct run_metadata *metadata, const char *key, bool otherwise);

/*
 * Store the key's bool. Returns 0, also if the key is missing, which leaves *is_true as it is;
 * -EINVAL if the value is not a bool.
 */
int run_metadata_bool(const struct run_metadata *metadata, const char *key, bool *is_true,
                      struct run_failure *failure);

/* Return true if the key is an array; *n is the number of its elements, else 0. */
bool run_metadata_is_array(const struct run_metadata *metadata, const char *key, size_t *n);

/*
 * Read the key's array, whose elements begin with its child; NULL if the key is missing. It belongs
 * to *json, which the caller frees. Returns 0, -EINVAL if the value is not an array, or the
 * negative errno of reading it, with nothing to free.
 */
int run_metadata_array(const struct run_metadata *metadata, const char *key, struct run_json *json,
                       const struct gguf_json **array, struct run_failure *failure);

struct run_range {
    double least, most;
    bool is_whole; /* integers alone */
};

/*
 * Store the key's number, or element `index` of its array (values that differ by layer). If the key
 * is missing, `*number` keeps the caller's default and the result is 0. In arrays, bools count as 0
 * and 1. -EINVAL if it is not a number, outside of the range, if there is one, or if the array is
 * too short. With `index` RUN_SCALAR, an array is an error: the key has one value for all layers.
 */
#define RUN_SCALAR SIZE_MAX

int run_metadata_number(const struct run_metadata *metadata, const char *key, size_t index,
                        const struct run_range *range, double *number, struct run_failure *failure);
