/*
 * The parts of run_hparams_read(). Keys are read one after the other, with one failure for all of
 * them. A key of the architecture is read only if the architecture's list in gguf/models/ has it;
 * the list also gives the default of a missing key.
 */
#pragma once

#include "contrib/runner/engine/hparams.h"
#include "gguf/models/key_lists.h"

/* After the first failure, reading does nothing. */
struct run_key_reader {
    const struct run_metadata *metadata;
    const struct gguf_architecture *model; /* whose lists count */
    struct run_failure *failure;
    int code;
    /* An array by layer must have this many values; for later layers, its last one counts. */
    size_t n_needed;
};

/* Fail with -ENOENT if a key that the lists require is missing. */
void run_read_check(struct run_key_reader *reader);

/* Return true if the architecture and the file have the key. */
bool run_read_has(const struct run_key_reader *reader, const char *key);

/*
 * Like the functions of metadata.h with these names. A missing key leaves `*value` unchanged,
 * unless the lists have a default.
 */
void run_read_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value);
void run_read_u32_at(struct run_key_reader *reader, const char *key, size_t layer, uint32_t max,
                     uint32_t *value);
void run_read_float(struct run_key_reader *reader, const char *key, float *value);
void run_read_float_at(struct run_key_reader *reader, const char *key, size_t layer, float *value);
bool run_read_bool(struct run_key_reader *reader, const char *key);
const char *run_read_string(const struct run_key_reader *reader, const char *key);

/* The key must be there, with a value from 1 to `max`. */
void run_need_u32(struct run_key_reader *reader, const char *key, uint32_t max, uint32_t *value);

/* Return the scale; if it is 0 or missing without a default, `otherwise`. */
float run_read_scale(struct run_key_reader *reader, const char *key, float otherwise);

/* Fail with -EINVAL and this text, unless something failed before. */
void run_read_refuse(struct run_key_reader *reader, const char *text);

/* Larger than in any known model. */
enum {
    MAX_WIDTH = 1 << 20,
    MAX_HEADS = GGUF_MAX_HEADS,
    MAX_HEAD_WIDTH = GGUF_MAX_HEAD_WIDTH,
    MAX_EXPERTS = 1 << 16,
};

/* Return the number of hparams->layers. */
static inline uint32_t run_hparams_n_shapes(const struct run_hparams *hparams)
{
    return hparams->n_layer + hparams->n_nextn;
}

/* Reads heads, windows and scales, after the sizes, n_layer and the heads of the layers. */
void run_hparams_read_attention(struct run_key_reader *reader, struct run_hparams *hparams);
