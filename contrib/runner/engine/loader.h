/*
 * Loading of weights into the parts of a model, with their shapes checked.
 */
#ifndef GGUFS_RUNNER_LOADER_H
#define GGUFS_RUNNER_LOADER_H

#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/multiply.h"
#include "contrib/runner/tree/weights.h"

/* A product with what belongs to it. Without weight.data there is no such product. */
struct run_linear {
    struct run_tensor weight; /* rows: ne[1], or ne[1] · ne[2] where there are several matrices */
    const float *bias;        /* one for each row, or NULL */
    const float *scale; /* X.scale beside X.weight: multiplies the product; NULL if there is none */
    uint64_t n_scales;  /* 1, or one for each of ne[2] matrices */
};

/* A normalization. `is_there` may be true without weights. */
struct run_norm_layer {
    bool is_there;
    enum run_norm_kind kind;
    float epsilon;
    const float *weight, *bias; /* [n_groups][width], or NULL */
    size_t width, n_groups;
};

/* Memory that lives as long as the model. */
struct run_keep {
    void **blocks;
    size_t n, room;
    size_t n_bytes; /* of all blocks */
};

void *run_keep_alloc(struct run_keep *keep, size_t n, size_t element_bytes); /* zeroed; or NULL */
void run_keep_free(struct run_keep *keep);

/* Names of tensors that were read. The names are kept by the weights. */
struct run_used_names {
    struct run_used_name {
        const char *full;
        const char *end; /* the part of `full` after the layer's prefix */
    } * list;
    size_t n, room;
};

/*
 * Reads tensors whose names begin with `prefix`. The first failure stays in `code` and `failure`;
 * what is asked for after it does nothing.
 */
struct run_loader {
    struct run_weights *weights;
    struct run_keep *keep;
    struct run_failure *failure;
    struct run_used_names *used; /* where names that are read are added; or NULL */
    int code;
    char prefix[32]; /* "blk.7." or "" */
};

/* Return true if there is a tensor of that name, and no failure yet. */
bool run_loader_has(const struct run_loader *loader, const char *name);

/* Fails with -EINVAL and that text, unless it has failed already. */
void run_loader_refuse(struct run_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails with -ENOENT for the tensor of that whole name, unless it has failed already. */
void run_loader_miss(struct run_loader *loader, const char *name);

/*
 * NAME.weight of `n` matrices of `out` rows of `in` elements, with NAME.bias and NAME.scale if they
 * are there. The second leaves `linear` empty if there is no NAME.weight.
 */
void run_load_linears(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                      uint64_t n, struct run_linear *linear);
void run_load_linear(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     struct run_linear *linear);
void run_load_linear_if(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                        struct run_linear *linear);

/* The same without bias and scale. */
void run_load_weight(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     uint64_t n, struct run_linear *linear);

/* The tensor of that whole name as n floats; the second gives NULL if it is not there. */
const float *run_load_vector(struct run_loader *loader, const char *name, uint64_t n);
const float *run_load_vector_if(struct run_loader *loader, const char *name, uint64_t n);

/* The number of elements, of rows, of that tensor; 0 if it is not there. */
uint64_t run_load_n_elements(struct run_loader *loader, const char *name);
uint64_t run_load_n_rows(struct run_loader *loader, const char *name);

/* NAME.weight (or, in some files, NAME) and NAME.bias, if they are there, of rows of
 * `width`, the same for all. */
void run_load_norm_if(struct run_loader *loader, const char *name, enum run_norm_kind kind,
                      float epsilon, uint64_t width, struct run_norm_layer *norm);

/* out = x · weights, [n][rows], with bias and scale. `matrix` is which of several, else 0. */
void run_linear_apply(const struct run_linear *linear, uint64_t matrix, const float *x, size_t n,
                      float *out);

/* Normalizes n rows of `width` floats to `out`, which may be x; copies if there is no norm. */
void run_norm_apply(const struct run_norm_layer *norm, const float *x, size_t n, size_t width,
                    float *out);

#endif
