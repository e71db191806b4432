/*
 * Rotary position embedding (Su et al. 2021): pairs of a head's elements are rotated by angles that
 * grow with the position.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum run_rotary_kind {
    RUN_ROTARY_NONE,
    RUN_ROTARY_NORMAL, /* adjacent pairs: (2i, 2i + 1) */
    RUN_ROTARY_NEOX,   /* pairs half of the rotated part apart: (i, i + n_rot/2) */
};

struct run_rotary {
    enum run_rotary_kind kind;
    uint32_t n_rot;      /* elements of a head that are rotated, from the first on; even */
    float magnitude;     /* multiplies rotated elements (YaRN's and longrope's factor) */
    double *frequencies; /* [n_rot/2]: radians per position */
};

/* Scaling of frequencies for contexts longer than the model was trained on. */
struct run_rotary_scaling {
    float base;           /* theta: frequency i is base^(-2i/n_rot) */
    float factor;         /* 1/factor of the frequency where it is interpolated; 1: none */
    float yarn_mix;       /* 0: interpolate all (linear); 1: YaRN (Peng et al. 2023) */
    float beta_fast;      /* YaRN: pairs with more rotations over the original context keep their
                             frequency, */
    float beta_slow;      /* pairs with fewer are interpolated; a ramp between */
    uint32_t n_original;  /* tokens of the original context */
    const float *factors; /* [n_rot/2] divisors of the frequencies, or NULL */
};

/*
 * Fill in the frequencies; kind and n_rot must be set. Free them with run_rotary_free(). Returns 0
 * or -ENOMEM.
 */
int run_rotary_make(struct run_rotary *rotary, const struct run_rotary_scaling *scaling);
void run_rotary_free(struct run_rotary *rotary);

/*
 * Rotate x in place: n tokens, `stride` floats apart, of n_heads heads of `width` floats; n_rot is
 * at most width. Token i has position first + i. Works in parallel.
 */
void run_rotate(const struct run_rotary *rotary, float *x, size_t n, size_t n_heads, size_t width,
                size_t stride, uint64_t first);
