/* Loads weights into the parts of a model and checks their shapes. */
#pragma once

#include "contrib/runner/compute/kv_cache.h"
#include "contrib/runner/compute/norm.h"
#include "contrib/runner/compute/multiply.h"
#include "contrib/runner/engine/hparams.h"
#include "contrib/runner/tree/weights.h"

/* A matrix, its bias and its scale. weight.data is NULL if the model lacks the matrix. */
struct run_linear {
    struct run_tensor weight; /* ne[1] rows, or ne[2] matrices of ne[1] rows */
    const float *bias;        /* one for each row, or NULL */
    const float *scale;       /* NAME.scale, or NULL: multiplies the product */
    uint64_t n_scales;        /* 1, or one for each of ne[2] matrices */
};

/* A normalization, applied if `is_there`, with or without weights. */
struct run_norm_layer {
    bool is_there;
    enum run_norm_kind kind;
    float epsilon;
    const float *weight, *bias; /* [n_groups][width], or NULL */
    size_t width, n_groups;
};

/* A recurrent layer's memory of earlier tokens. */
struct run_state {
    struct run_state *next;
    float *values;
    size_t n;
    float empty; /* all values before the first token */
};

struct run_states {
    struct run_state *newest;
    bool are_final; /* a mixer cannot rewind its state; see struct run_mixer_ops */
};

void run_state_reset(const struct run_state *state);

/* Memory that is freed with the model. */
struct run_arena {
    void **blocks;
    size_t n, room;
    size_t n_bytes; /* of all blocks */
    struct run_states states;
    struct run_cache *caches; /* of keys and values, the newest first */
    struct run_cache *kept;   /* what recurrent mixers need for a rewind */
};

void run_arena_free(struct run_arena *arena);

/*
 * Loads tensors whose names begin with `prefix`. The first failure stays in `code` and `failure`;
 * after it, loading does nothing.
 */
struct run_loader {
    struct run_weights *weights;
    const struct gguf_architecture *model; /* only tensors of its lists are loaded; NULL: all */
    struct run_arena *arena;
    struct run_failure *failure;
    int code;
    bool can_rewind; /* states that are loaded now belong to a mixer that can rewind them */
    char prefix[32]; /* "blk.7." or "" */
};

/* Return zeroed memory of the arena. Without memory, report a failure and return NULL. */
void *run_load_alloc(struct run_loader *loader, size_t n, size_t element_bytes);

/* Add a cache, which must stay in its place, to a list of the arena. */
void run_load_cache(struct run_cache **list, struct run_cache *cache);

/*
 * Return zeroed memory of rows · width floats that is freed with the model, or NULL after a
 * failure.
 */
float *run_load_memory(struct run_loader *loader, uint64_t rows, uint64_t width);

/* The same for a state, which is `empty` before the first token; see struct run_states. */
float *run_load_state(struct run_loader *loader, uint64_t rows, uint64_t width, float empty);

/* Return true if there is a tensor PREFIX NAME and nothing has failed. */
bool run_loader_has(const struct run_loader *loader, const char *name);

/* Fails with -EINVAL and the text, unless something failed before. */
void run_loader_refuse(struct run_loader *loader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails with -ENOENT and names the tensor, unless something failed before. */
void run_loader_miss(struct run_loader *loader, const char *name);

/*
 * Loads NAME.weight: `n` matrices, or one, of `out` rows of `in` elements, with NAME.bias and
 * NAME.scale if they are there. run_load_linear_if() leaves `linear` empty if there is no
 * NAME.weight.
 */
void run_load_linears(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                      uint64_t n, struct run_linear *linear);
void run_load_linear(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     struct run_linear *linear);
void run_load_linear_if(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                        struct run_linear *linear);

/* Like run_load_linear(), without bias and scale. */
void run_load_weight(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     uint64_t n, struct run_linear *linear);

/*
 * Return the tensor NAME as n floats, decoded. run_load_vector_if() returns NULL if the tensor is
 * missing. Both return NULL after a failure.
 */
float *run_load_vector(struct run_loader *loader, const char *name, uint64_t n);
const float *run_load_vector_if(struct run_loader *loader, const char *name, uint64_t n);

/* Return n numbers, each `width` times; NULL after a failure. */
const float *run_load_repeated(struct run_loader *loader, const float *numbers, uint64_t n,
                               uint64_t width);

/* Return the number of elements or rows of the tensor NAME; 0 if it is missing. */
uint64_t run_load_n_elements(struct run_loader *loader, const char *name);
uint64_t run_load_n_rows(struct run_loader *loader, const char *name);

/* Loads the norm NAME of rows of `width` elements: NAME.weight (in some files NAME) and, if it is
 * there, NAME.bias. Without weight, norm->is_there is false. */
void run_load_norm_if(struct run_loader *loader, const char *name, enum run_norm_kind kind,
                      float epsilon, uint64_t width, struct run_norm_layer *norm);

/* The same for a norm of the residual stream, of the kind that the model has. */
void run_load_stream_norm_if(struct run_loader *loader, const struct run_hparams *hparams,
                             const char *name, struct run_norm_layer *norm);

/*
 * Checks that the model has the tensors that gguf/models/ lists, that it uses all of them, and that
 * all layers of a kind have the same tensors. The loader chooses computations by the tensors that
 * exist, so without these checks a missing tensor, or one too many, would silently change results.
 *
 * Fail with -ENOENT if a tensor outside of layers is missing, or one of layer `index`, and with
 * -EINVAL if there are more layers than the metadata say. The message names the tensor and the
 * rule.
 */
void run_require_ends(struct run_loader *loader, const struct run_hparams *hparams);
void run_require_layer(struct run_loader *loader, const struct run_hparams *hparams,
                       uint32_t index);

/* 1 + the index of the first layer of each kind; 0: none so far. */
struct run_layer_kinds {
    uint32_t first[256];
};

/*
 * Check layer `index` after it was loaded: fail with -EINVAL if it has a listed tensor that was not
 * loaded, and with -ENOENT if it lacks a tensor that the first layer of its kind has, or the other
 * way round. Layers of a kind have the same parts: heads, experts, a window and so on.
 */
void run_check_layer(struct run_loader *loader, const struct run_hparams *hparams, uint32_t index,
                     struct run_layer_kinds *kinds);

/* out = x · weights, [n][rows], with scale and bias. `matrix` is the index of the matrix, 0 if
 * there is one. */
void run_linear_apply(const struct run_linear *linear, uint64_t matrix, const float *x, size_t n,
                      float *out);

enum { RUN_MAX_LINEARS = 3 };

struct run_linear_to {
    const struct run_linear *linear; /* left out if it has no weight */
    float *out;
};

/* The same for up to RUN_MAX_LINEARS products with the same x, which is faster. */
void run_linears_apply(const struct run_linear_to list[], size_t n_linears, uint64_t matrix,
                       const float *x, size_t n);

/* out = n normalized rows of `width` floats of x; a copy without norm. `out` may be x. */
void run_norm_apply(const struct run_norm_layer *norm, const float *x, size_t n, size_t width,
                    float *out);

/* Normalizes n rows of norm->width floats in place, `stride` floats apart, if there is a norm. */
void run_norm_rows(const struct run_norm_layer *norm, float *x, size_t n, size_t stride);
