#include "contrib/runner/engine/recurrent_parts.h"

#include <stdio.h>
#include <string.h>

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
    float *memory = NULL;

    if (loader->code < 0)
        return NULL;
    if (__builtin_mul_overflow(rows, width, &n) || n > SIZE_MAX / sizeof *memory ||
        is_too_much(loader, n * sizeof *memory)) {
        run_loader_refuse(loader, "tensors/%s: a state of %llu by %llu is too large for the model",
                          loader->prefix, (unsigned long long)rows, (unsigned long long)width);
        return NULL;
    }
    memory = run_arena_alloc(loader->arena, n, sizeof *memory);
    if (!memory)
        loader->code = run_fail_memory(loader->failure);
    return memory;
}

uint64_t run_load_n_channels(struct run_loader *loader, const char *name)
{
    char whole[64];

    snprintf(whole, sizeof whole, "%s.weight", name);
    return run_load_n_rows(loader, whole);
}

void run_load_convolution(struct run_loader *loader, const char *name, uint64_t n_channels,
                          struct run_convolution *convolution)
{
    char whole[64];
    const float *weights;
    uint64_t n_taps;
    float *taps;

    snprintf(whole, sizeof whole, "%s.weight", name);
    n_taps = n_channels ? run_load_n_elements(loader, whole) / n_channels : 0;
    if (n_taps == 0 || n_channels > RUN_MAX_CHANNELS) {
        run_loader_refuse(loader,
                          "tensors/%s%s: missing, too small for %llu channels, or over %d channels",
                          loader->prefix, whole, (unsigned long long)n_channels, RUN_MAX_CHANNELS);
        return;
    }
    weights = run_load_vector(loader, whole, n_taps * n_channels);
    taps = run_load_memory(loader, n_taps, n_channels);
    convolution->past = run_load_memory(loader, n_taps - 1, n_channels);
    snprintf(whole, sizeof whole, "%s.bias", name);
    convolution->bias = run_load_vector_if(loader, whole, n_channels);
    if (loader->code < 0)
        return;
    for (size_t c = 0; c < n_channels; c++)
        for (size_t k = 0; k < n_taps; k++)
            taps[k * n_channels + c] = weights[c * n_taps + k];
    convolution->taps = taps;
    convolution->n_channels = n_channels;
    convolution->n_taps = n_taps;
}

void run_convolution_reset(struct run_convolution *convolution)
{
    memset(convolution->past, 0,
           (convolution->n_taps - 1) * convolution->n_channels * sizeof(float));
}

void run_copy_rows(const float *from, size_t from_stride, size_t n, size_t width, float *to,
                   size_t to_stride)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, width * sizeof *to);
}
