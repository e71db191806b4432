/* A hash with a secret key: nobody can choose inputs that collide, as the makers of files might. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct gguf_hash_key {
    uint64_t words[2];
};

/* Fill in a random key. 0, or a negative errno of getrandom(2). */
int gguf_hash_key_make(struct gguf_hash_key *key);

/*
 * Return the SipHash-1-3 of the bytes. Source: Aumasson and Bernstein, "SipHash: a fast short-input
 * PRF", https://www.aumasson.jp/siphash/siphash.pdf
 */
uint64_t gguf_hash(const struct gguf_hash_key *key, const void *bytes, size_t length);

/*
 * Return a hash of two numbers, which is faster. Any two pairs agree in any n bits of it with a
 * probability of 2^-n over the keys. Source: Dietzfelbinger, "Universal hashing and k-wise
 * independent random variables via integer arithmetic without primes", STACS 1996 (the
 * multiply-shift scheme).
 */
static inline uint32_t gguf_hash_pair(const struct gguf_hash_key *key, uint32_t a, uint32_t b)
{
    return (uint32_t)((key->words[0] * a + key->words[1] * b) >> 32);
}
