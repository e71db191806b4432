#include "contrib/runner/engine/recurrent_parts.h"

#include <stdio.h>
#include <string.h>

void run_load_convolution(struct run_loader *loader, const char *name, const char *parts,
                          uint64_t n_channels, struct run_convolution *convolution)
{
    const size_t n_parts = parts[0] != '\0' ? strlen(parts) : 1;
    const uint64_t n_part = n_channels / n_parts;
    uint64_t n_taps = 0;
    float *taps = NULL;

    for (size_t part = 0; part < n_parts; part++) {
        char whole[64];
        const float *weights;
        int length = snprintf(whole, sizeof whole, "%s%s%.1s.weight", name,
                              parts[0] != '\0' ? "_" : "", parts + part);

        if (part == 0) {
            n_taps = n_part ? run_load_n_elements(loader, whole) / n_part : 0;
            if (n_taps == 0 || n_channels > RUN_MAX_CHANNELS) {
                run_loader_refuse(loader,
                                  "tensors/%s%s: missing, too small for %llu channels, or over %d "
                                  "channels",
                                  loader->prefix, whole, (unsigned long long)n_part,
                                  RUN_MAX_CHANNELS);
                return;
            }
            taps = run_load_memory(loader, n_taps, n_channels);
        }
        weights = run_load_vector(loader, whole, n_taps * n_part);
        snprintf(whole + length - strlen("weight"), sizeof "bias", "bias");
        convolution->bias = run_load_vector_if(loader, whole, n_part);
        if (loader->code < 0)
            return;
        for (size_t c = 0; c < n_part; c++)
            for (size_t k = 0; k < n_taps; k++)
                taps[k * n_channels + part * n_part + c] = weights[c * n_taps + k];
    }
    convolution->past = run_load_state(loader, n_taps - 1, n_channels, 0);
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
