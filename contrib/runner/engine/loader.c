#include "contrib/runner/engine/loader.h"

#include "gguf/models/tensor_lists.h"
#include "gguf/support/arrays.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *run_load_alloc(struct run_loader *loader, size_t n, size_t element_bytes)
{
    struct run_arena *arena = loader->arena;
    void *block = NULL;

    if (gguf_reserve(&arena->blocks, &arena->room, arena->n + 1, sizeof block) == 0)
        block = calloc(n ? n : 1, element_bytes);
    if (block) {
        arena->blocks[arena->n++] = block;
        arena->n_bytes += n * element_bytes;
    } else if (loader->code == 0) {
        loader->code = run_fail_memory(loader->failure);
    }
    return block;
}

/*
 * Limits of states. A real state is smaller than the weights for its rows and columns. But its size
 * is a product of two dimensions, so hostile numbers could make it much larger.
 */
#define LEAST_MEMORY_BYTES ((uint64_t)64 << 20)
#define MEMORY_TO_WEIGHTS  32

static bool is_too_much(const struct run_loader *loader, uint64_t n_bytes)
{
    const uint64_t limit =
        LEAST_MEMORY_BYTES + MEMORY_TO_WEIGHTS * run_weights_mapped_bytes(loader->weights);

    return n_bytes > limit || loader->arena->n_bytes > limit - n_bytes;
}

float *run_load_memory(struct run_loader *loader, uint64_t rows, uint64_t width)
{
    uint64_t n;

    if (loader->code < 0)
        return NULL;
    if (__builtin_mul_overflow(rows, width, &n) || n > SIZE_MAX / sizeof(float) ||
        is_too_much(loader, n * sizeof(float))) {
        run_loader_refuse(loader, "tensors/%s: a state of %llu by %llu is too large for the model",
                          loader->prefix, (unsigned long long)rows, (unsigned long long)width);
        return NULL;
    }
    return run_load_alloc(loader, n, sizeof(float));
}

float *run_load_state(struct run_loader *loader, uint64_t rows, uint64_t width, float empty)
{
    float *values = run_load_memory(loader, rows, width);
    struct run_states *states = &loader->arena->states;
    struct run_state *state = values ? run_load_alloc(loader, 1, sizeof *state) : NULL;

    if (!state)
        return NULL;
    *state = (struct run_state){states->newest, values, rows * width, empty};
    states->newest = state;
    states->are_final |= !loader->can_rewind;
    run_state_reset(state);
    return values;
}

void run_state_reset(const struct run_state *state)
{
    for (size_t i = 0; i < state->n; i++)
        state->values[i] = state->empty;
}

void run_arena_free(struct run_arena *arena)
{
    struct run_cache *const lists[] = {arena->caches, arena->kept};

    for (size_t i = 0; i < 2; i++)
        for (struct run_cache *cache = lists[i]; cache; cache = cache->next)
            run_cache_free(cache);
    for (size_t i = 0; i < arena->n; i++)
        free(arena->blocks[i]);
    free(arena->blocks);
    *arena = (struct run_arena){0};
}

void run_load_cache(struct run_cache **list, struct run_cache *cache)
{
    cache->next = *list;
    *list = cache;
}

struct name {
    char text[256];
};

/* Use as full_name(…).text inside one expression. */
static struct name full_name(const struct run_loader *loader, const char *name, const char *end)
{
    struct name full;

    snprintf(full.text, sizeof full.text, "%s%s%s", loader->prefix, name, end);
    return full;
}

static bool has(const struct run_loader *loader, const char *name, const char *end)
{
    return loader->code == 0 && run_weights_has(loader->weights, full_name(loader, name, end).text);
}

bool run_loader_has(const struct run_loader *loader, const char *name)
{
    return has(loader, name, "");
}

void run_loader_refuse(struct run_loader *loader, const char *format, ...)
{
    char text[512];
    va_list arguments;

    if (loader->code < 0)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    loader->code = run_fail(loader->failure, -EINVAL, "%s", text);
}

void run_loader_miss(struct run_loader *loader, const char *name)
{
    if (loader->code == 0)
        loader->code =
            run_fail(loader->failure, -ENOENT, "tensors/%s%s: missing", loader->prefix, name);
}

/*
 * Return true if the model has the tensor but no list of its architecture does. Names of rwkv.cpp,
 * which begin with "blocks.", are not in the lists and give false.
 */
static bool is_foreign(const struct run_loader *loader, const char *name)
{
    return loader->model && strncmp(loader->prefix, "blocks.", 7) != 0 &&
           run_weights_has(loader->weights, name) && !gguf_lists_have(loader->model, name);
}

/* Returns false after a failure. */
static bool get(struct run_loader *loader, const char *name, const char *end,
                struct run_tensor *tensor)
{
    const struct name full = full_name(loader, name, end);

    if (loader->code < 0)
        return false;
    if (is_foreign(loader, full.text)) {
        run_loader_refuse(loader,
                          "tensors/%s: the architecture has no such tensor; general.architecture "
                          "may be wrong",
                          full.text);
        return false;
    }
    loader->code = run_weights_get(loader->weights, full.text, tensor, loader->failure);
    return loader->code == 0;
}

static uint64_t n_elements(const struct run_tensor *tensor)
{
    return tensor->ne[0] * run_tensor_rows(tensor);
}

static float *decode(struct run_loader *loader, const struct run_tensor *tensor)
{
    const uint64_t rows = run_tensor_rows(tensor);
    float *values = run_load_alloc(loader, n_elements(tensor), sizeof *values);

    for (uint64_t i = 0; values && i < rows; i++)
        run_tensor_decode_row(tensor, i, values + i * tensor->ne[0]);
    return values;
}

static float *load_vector(struct run_loader *loader, const char *name, const char *end, uint64_t n)
{
    struct run_tensor tensor;

    if (!get(loader, name, end, &tensor))
        return NULL;
    if (n_elements(&tensor) != n) {
        run_loader_refuse(loader, "tensors/%s: %llu elements, expected %llu", tensor.name,
                          (unsigned long long)n_elements(&tensor), (unsigned long long)n);
        return NULL;
    }
    return decode(loader, &tensor);
}

float *run_load_vector(struct run_loader *loader, const char *name, uint64_t n)
{
    return load_vector(loader, name, "", n);
}

const float *run_load_repeated(struct run_loader *loader, const float *numbers, uint64_t n,
                               uint64_t width)
{
    float *values = run_load_memory(loader, n, width);

    for (uint64_t i = 0; numbers && values && i < n * width; i++)
        values[i] = numbers[i / width];
    return values;
}

const float *run_load_vector_if(struct run_loader *loader, const char *name, uint64_t n)
{
    return run_loader_has(loader, name) ? load_vector(loader, name, "", n) : NULL;
}

uint64_t run_load_n_elements(struct run_loader *loader, const char *name)
{
    struct run_tensor tensor;

    return has(loader, name, "") && get(loader, name, "", &tensor) ? n_elements(&tensor) : 0;
}

uint64_t run_load_n_rows(struct run_loader *loader, const char *name)
{
    struct run_tensor tensor;

    return has(loader, name, "") && get(loader, name, "", &tensor) ? run_tensor_rows(&tensor) : 0;
}

void run_load_weight(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     uint64_t n, struct run_linear *linear)
{
    struct run_tensor *weight = &linear->weight;
    uint64_t n_matrices;

    *linear = (struct run_linear){0};
    if (!get(loader, name, ".weight", weight))
        return;
    n_matrices = weight->ne[2] * weight->ne[3];
    if (weight->ne[0] != in || weight->ne[1] != out || n_matrices != n) {
        run_loader_refuse(loader,
                          "tensors/%s: shape [%llu, %llu, %llu] (ne), expected [%llu, %llu, %llu]",
                          weight->name, (unsigned long long)weight->ne[0],
                          (unsigned long long)weight->ne[1], (unsigned long long)n_matrices,
                          (unsigned long long)in, (unsigned long long)out, (unsigned long long)n);
    }
}

void run_load_linears(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                      uint64_t n, struct run_linear *linear)
{
    struct run_tensor scale;

    run_load_weight(loader, name, in, out, n, linear);
    if (has(loader, name, ".bias"))
        linear->bias = load_vector(loader, name, ".bias", out * n);
    if (has(loader, name, ".scale") && get(loader, name, ".scale", &scale)) {
        linear->n_scales = n_elements(&scale) == 1 ? 1 : n;
        linear->scale = load_vector(loader, name, ".scale", linear->n_scales);
    }
}

void run_load_linear(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                     struct run_linear *linear)
{
    run_load_linears(loader, name, in, out, 1, linear);
}

void run_load_linear_if(struct run_loader *loader, const char *name, uint64_t in, uint64_t out,
                        struct run_linear *linear)
{
    *linear = (struct run_linear){0};
    if (has(loader, name, ".weight"))
        run_load_linears(loader, name, in, out, 1, linear);
}

void run_load_norm_if(struct run_loader *loader, const char *name, enum run_norm_kind kind,
                      float epsilon, uint64_t width, struct run_norm_layer *norm)
{
    *norm =
        (struct run_norm_layer){.kind = kind, .epsilon = epsilon, .width = width, .n_groups = 1};
    if (has(loader, name, ".weight"))
        norm->weight = load_vector(loader, name, ".weight", width);
    else
        norm->weight = run_load_vector_if(loader, name, width);
    if (has(loader, name, ".bias"))
        norm->bias = load_vector(loader, name, ".bias", width);
    norm->is_there = norm->weight != NULL;
    if (norm->bias && !norm->weight && loader->code == 0)
        loader->code = run_fail(loader->failure, -ENOENT, "tensors/%s: missing",
                                full_name(loader, name, ".weight").text);
}

void run_load_stream_norm_if(struct run_loader *loader, const struct run_hparams *hparams,
                             const char *name, struct run_norm_layer *norm)
{
    run_load_norm_if(loader, name, hparams->norm_kind, hparams->norm_epsilon, hparams->n_embd,
                     norm);
}

/* Apply scale and bias of matrix `matrix` to n products. */
static void finish_linear(const struct run_linear *linear, uint64_t matrix, size_t n, float *out)
{
    const uint64_t rows = linear->weight.ne[1];
    const float scale = linear->scale ? linear->scale[linear->n_scales > 1 ? matrix : 0] : 1;

    if (scale != 1)
        for (size_t i = 0; i < n * rows; i++)
            out[i] *= scale;
    if (linear->bias)
        for (size_t i = 0; i < n; i++)
            for (size_t r = 0; r < rows; r++)
                out[i * rows + r] += linear->bias[matrix * rows + r];
}

void run_linears_apply(const struct run_linear_to list[], size_t n_linears, uint64_t matrix,
                       const float *x, size_t n)
{
    struct run_product products[RUN_MAX_LINEARS] = {0};
    size_t n_products = 0;

    assert(n_linears <= RUN_MAX_LINEARS);
    for (size_t i = 0; i < n_linears; i++) {
        const struct run_tensor *weight = &list[i].linear->weight;
        const uint64_t rows = weight->ne[1];

        if (weight->data)
            products[n_products++] =
                (struct run_product){run_tensor_slice(weight, matrix * rows, rows), list[i].out};
    }
    run_multiply(products, n_products, x, n);
    for (size_t i = 0; i < n_linears; i++)
        if (list[i].linear->weight.data)
            finish_linear(list[i].linear, matrix, n, list[i].out);
}

void run_linear_apply(const struct run_linear *linear, uint64_t matrix, const float *x, size_t n,
                      float *out)
{
    run_linears_apply(&(struct run_linear_to){linear, out}, 1, matrix, x, n);
}

void run_norm_rows(const struct run_norm_layer *norm, float *x, size_t n, size_t stride)
{
    if (norm->is_there)
        run_norm(norm->kind, norm->epsilon, x, n, norm->width, stride, norm->weight, norm->bias,
                 norm->n_groups, x);
}

void run_norm_apply(const struct run_norm_layer *norm, const float *x, size_t n, size_t width,
                    float *out)
{
    if (norm->is_there)
        run_norm(norm->kind, norm->epsilon, x, n, width, width, norm->weight, norm->bias,
                 norm->n_groups, out);
    else if (out != x)
        memcpy(out, x, n * width * sizeof *out);
}
