/*
 * A model: what a file of any format holds, in one form. It is complete and valid once gguf_open()
 * has returned, and never changes after that, so any thread may read it without a lock.
 */
#ifndef GGUFS_GGUF_MODEL_H
#define GGUFS_GGUF_MODEL_H

#include "dequant/types.h"
#include "gguf/map.h"
#include "gguf/report.h"
#include "gguf/values.h"

#include <stdbool.h>
#include <stdint.h>

/* The limits of the GGUF specification. */
#define GGUF_MAX_DIMS          4
#define GGUF_MAX_KEY_BYTES     65535
#define GGUF_DEFAULT_ALIGNMENT 32
/* The specification says 64; files with longer ones exist, and nothing here depends on it. */
#define GGUF_MAX_TENSOR_NAME_BYTES 65535

/* No real file comes near, and every entry costs memory. */
#define GGUF_MAX_KEYS    262144
#define GGUF_MAX_TENSORS 262144

struct gguf_key {
    struct gguf_string name;
    struct gguf_value value;
    uint64_t file_offset; /* of the key's name in the file, for messages */
};

struct gguf_tensor {
    struct gguf_string name;
    uint32_t type_id;                /* as the file says */
    const struct dequant_type *type; /* NULL if the id is unknown */
    bool big_endian;                 /* the byte order of its data */

    uint32_t n_dims;
    uint64_t ne[GGUF_MAX_DIMS]; /* elements per dimension, ggml order: ne[0] is the fastest;
                                   1 from n_dims on */
    uint64_t n_elements;
    uint64_t size_bytes; /* of its data; 0 if the type is unknown */

    uint32_t file_index;  /* its data are in files[file_index] … */
    uint64_t file_offset; /* … at this offset */
    uint64_t info_offset; /* of its entry in the tensor table, for messages */
};

struct gguf_model {
    const char *format; /* "GGUF v3" */
    bool big_endian;
    uint64_t alignment_bytes; /* of tensor data; a power of two */

    struct gguf_file *files; /* at least one */
    uint32_t n_files;
    struct gguf_key *keys; /* in file order */
    uint64_t n_keys;
    struct gguf_tensor *tensors; /* in file order */
    uint64_t n_tensors;
};

/*
 * Opens, parses and validates the model file at `path`. On success *model is to be freed with
 * gguf_close(). On failure returns a negative errno, *model is NULL, and `report` says why.
 * gguf_map_catch_faults() must have been called before.
 */
int gguf_open(const char *path, struct gguf_model **model, struct gguf_report *report);

void gguf_close(struct gguf_model *model);

/* Where in files[0] a string or array ends; 0 for values of which nothing is in the file. */
uint64_t gguf_value_end(const struct gguf_model *model, const struct gguf_value *value);

/* The key of that name, or NULL. */
const struct gguf_key *gguf_find_key(const struct gguf_model *model, const char *name);

#endif
