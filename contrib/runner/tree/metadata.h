/*
 * The metadata of the model, from metadata.json of its tree. Read once; const afterwards, so any
 * thread may ask.
 */
#ifndef GGUFS_RUNNER_METADATA_H
#define GGUFS_RUNNER_METADATA_H

#include "contrib/runner/tree/failure.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run_metadata;

/* Reads metadata.json below the directory `tree_fd`. */
int run_metadata_open(int tree_fd, struct run_metadata **out, struct run_failure *failure);
void run_metadata_close(struct run_metadata *metadata);

/* The value of general.architecture; "" if there is none. */
const char *run_metadata_architecture(const struct run_metadata *metadata);

/*
 * In all that follows a key that begins with a dot is one of the architecture's: ".block_count" is
 * "llama.block_count" in a llama.
 */

/* The value as it is; NULL if there is no such key. */
const cJSON *run_metadata_find(const struct run_metadata *metadata, const char *key);

/* The string; NULL if there is no such key or it is not a string. */
const char *run_metadata_string(const struct run_metadata *metadata, const char *key);

/* Whether the key is there and true. */
bool run_metadata_is_true(const struct run_metadata *metadata, const char *key);

/*
 * Stores the number of that key, or its element `index` where it is an array (values that differ by
 * layer). Where there is no such key, `*value` stays as it is and the result is 0: the caller has
 * put the default there. Booleans count as 0 and 1. -EINVAL if it is no number, no whole one, out
 * of range, or if the array is too short.
 */
int run_metadata_u32_at(const struct run_metadata *metadata, const char *key, size_t index,
                        uint32_t max, uint32_t *value, struct run_failure *failure);
int run_metadata_float_at(const struct run_metadata *metadata, const char *key, size_t index,
                          float *value, struct run_failure *failure);

/* The same for keys that have one value. */
int run_metadata_u32(const struct run_metadata *metadata, const char *key, uint32_t max,
                     uint32_t *value, struct run_failure *failure);
int run_metadata_float(const struct run_metadata *metadata, const char *key, float *value,
                       struct run_failure *failure);

/* As run_metadata_u32, but the key must be there and its value be `min` at least. */
int run_metadata_need_u32(const struct run_metadata *metadata, const char *key, uint32_t min,
                          uint32_t max, uint32_t *value, struct run_failure *failure);

#endif
