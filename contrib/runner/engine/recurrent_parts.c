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
    convolution->past = run_load_state(loader, n_taps - 1, n_channels, 0);
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

void run_copy_rows(const float *from, size_t from_stride, size_t n, size_t width, float *to,
                   size_t to_stride)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, width * sizeof *to);
}

void run_low_rank_load(struct run_loader *loader, const char *name, char first, uint64_t in,
                       uint64_t out, uint64_t n_parts, enum run_activation activation,
                       const float *bias, struct run_low_rank *low_rank)
{
    char whole[64];
    uint64_t rank;

    low_rank->activation = activation;
    snprintf(whole, sizeof whole, "%s%c.weight", name, first);
    rank = run_load_n_rows(loader, whole) / n_parts;
    snprintf(whole, sizeof whole, "%s%c", name, first);
    run_load_linear(loader, whole, in, rank * n_parts, &low_rank->down);
    low_rank->down.weight.ne[1] = rank;
    low_rank->down.weight.ne[2] = n_parts;
    snprintf(whole, sizeof whole, "%s%c", name, first + 1);
    run_load_linears(loader, whole, rank, out, n_parts, &low_rank->up);
    if (bias)
        low_rank->up.bias = bias;
}

void run_low_rank_apply(const struct run_low_rank *low_rank, const struct run_pass *pass,
                        uint64_t part, const float *x, float *out)
{
    const struct run_scratch_mark mark = run_scratch_mark(pass->scratch);
    const size_t n_narrow = pass->n * low_rank->down.weight.ne[1];
    float *narrow = run_scratch_take(pass->scratch, n_narrow);

    run_linear_apply(&low_rank->down, part, x, pass->n, narrow);
    run_activate(low_rank->activation, NULL, narrow, n_narrow);
    run_linear_apply(&low_rank->up, part, narrow, pass->n, out);
    run_scratch_release(pass->scratch, mark);
}
