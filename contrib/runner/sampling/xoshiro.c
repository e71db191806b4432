#include "contrib/runner/sampling/xoshiro.h"

static uint64_t rotate_left(uint64_t value, int n_bits)
{
    return (value << n_bits) | (value >> (64 - n_bits));
}

void run_xoshiro_seed(struct run_xoshiro *xoshiro, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        xoshiro->state[i] = z ^ (z >> 31);
    }
}

uint64_t run_xoshiro_next(struct run_xoshiro *xoshiro)
{
    uint64_t *s = xoshiro->state;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double run_xoshiro_double(struct run_xoshiro *xoshiro)
{
    return (double)(run_xoshiro_next(xoshiro) >> 11) * 0x1p-53;
}
