/*
 * Pseudo-random numbers: xoshiro256++ 1.0 of David Blackman and Sebastiano Vigna, seeded with
 * splitmix64, both from https://prng.di.unimi.it (public domain). The same seed gives the same
 * numbers everywhere.
 */
#pragma once

#include <stdint.h>

struct run_xoshiro {
    uint64_t state[4];
};

void run_xoshiro_seed(struct run_xoshiro *xoshiro, uint64_t seed);
uint64_t run_xoshiro_next(struct run_xoshiro *xoshiro);

/* Uniform in [0, 1), a multiple of 2^-53. */
double run_xoshiro_double(struct run_xoshiro *xoshiro);
