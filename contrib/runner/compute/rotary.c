#include "contrib/runner/compute/rotary.h"

#include "contrib/runner/compute/thread_pool.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Elements in a piece of work. */
#define PIECE_ELEMENTS 16384

/*
 * Return the index of the pair that turns `rotations` times over the original context, from YaRN's
 * ramp.
 */
static double pair_of_rotations(const struct run_rotary_scaling *scaling, uint32_t n_rot,
                                double rotations)
{
    return n_rot * log(scaling->n_original / (rotations * 2 * M_PI)) /
           (2 * log((double)scaling->base));
}

int run_rotary_make(struct run_rotary *rotary, const struct run_rotary_scaling *scaling)
{
    const uint32_t n_pairs = rotary->n_rot / 2;
    double low = 0, high = 0;

    rotary->frequencies = calloc(n_pairs ? n_pairs : 1, sizeof *rotary->frequencies);
    if (!rotary->frequencies)
        return -ENOMEM;
    if (scaling->yarn_mix != 0) {
        low = fmax(0, floor(pair_of_rotations(scaling, rotary->n_rot, (double)scaling->beta_fast)));
        high = fmin((double)rotary->n_rot - 1,
                    ceil(pair_of_rotations(scaling, rotary->n_rot, (double)scaling->beta_slow)));
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        double frequency = pow((double)scaling->base, -2.0 * i / rotary->n_rot);
        double interpolated, mix = 0;

        if (scaling->factors)
            frequency /= (double)scaling->factors[i];
        interpolated = frequency / (double)scaling->factor;
        if (scaling->yarn_mix != 0)
            mix = (double)scaling->yarn_mix *
                  (1 - fmin(1, fmax(0, (i - low) / fmax(0.001, high - low))));
        rotary->frequencies[i] = interpolated * (1 - mix) + frequency * mix;
    }
    return 0;
}

void run_rotary_free(struct run_rotary *rotary)
{
    free(rotary->frequencies);
    rotary->frequencies = NULL;
}

/* The arguments of run_rotate(). */
struct call {
    const struct run_rotary *rotary;
    float *x;
    size_t n_heads, width, stride;
    uint64_t position; /* of the first token */
};

/* Rotate pair by pair, so that sine and cosine are computed once for all heads. */
static void rotate_token(void *context, size_t token)
{
    const struct call *call = context;
    const struct run_rotary *rotary = call->rotary;
    float *x = call->x + token * call->stride;
    const size_t n_pairs = rotary->n_rot / 2;
    const size_t distance = rotary->kind == RUN_ROTARY_NEOX ? n_pairs : 1;
    const size_t step = rotary->kind == RUN_ROTARY_NEOX ? 1 : 2;

    for (size_t i = 0; i < n_pairs; i++) {
        const double angle = (double)(call->position + token) * rotary->frequencies[i];
        const float cosine = (float)cos(angle) * rotary->magnitude;
        const float sine = (float)sin(angle) * rotary->magnitude;

        for (size_t head = 0; head < call->n_heads; head++) {
            float *pair = x + head * call->width + i * step;
            const float a = pair[0], b = pair[distance];

            pair[0] = a * cosine - b * sine;
            pair[distance] = a * sine + b * cosine;
        }
    }
}

void run_rotate(const struct run_rotary *rotary, float *x, size_t n, size_t n_heads, size_t width,
                size_t stride, uint64_t first)
{
    struct call call = {rotary, x, n_heads, width, stride, first};

    if (rotary->kind != RUN_ROTARY_NONE)
        run_parallel_for_each(n, run_grain(PIECE_ELEMENTS, n_heads * width), rotate_token, &call);
}
