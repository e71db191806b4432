/* Reads metadata keys one after the other, with one failure for all of them. */
#ifndef GGUFS_RUNNER_KEY_READER_H
#define GGUFS_RUNNER_KEY_READER_H

#include "contrib/runner/tree/metadata.h"

/* After the first failure, reading does nothing. */
struct run_key_reader {
    const struct run_metadata *metadata;
    struct run_failure *failure;
    int code;
    /* An array by layer must have this many values; for later layers, its last one counts. */
    size_t n_needed;
};

/* Like the functions of metadata.h with these names: a missing key leaves `*value` unchanged. */
void run_read_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value);
void run_read_u32_at(struct run_key_reader *reader, const char *key, size_t layer, uint32_t max,
                     uint32_t *value);
void run_read_float(struct run_key_reader *reader, const char *key, float *value);
void run_read_float_at(struct run_key_reader *reader, const char *key, size_t layer, float *value);

/* The key must be there, with a value from 1 to `max`. */
void run_need_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value);

/* Returns the scale, or `otherwise` if the key is missing or 0. */
float run_read_scale(struct run_key_reader *reader, const char *key, float otherwise);

/* Fail with -EINVAL and this text, unless something failed before. */
void run_read_refuse(struct run_key_reader *reader, const char *text);

#endif
