#include "gguf/support/keyed_hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

int gguf_hash_key_make(struct gguf_hash_key *key)
{
    /* getrandom() never returns so few bytes in part. */
    return getrandom(key->words, sizeof key->words, 0) == (ssize_t)sizeof key->words ? 0 : -errno;
}

static uint64_t rotate(uint64_t word, unsigned n_bits)
{
    return word << n_bits | word >> (64 - n_bits);
}

static inline void mix(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static inline void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v);
    v[0] ^= word;
}

uint64_t gguf_hash(const struct gguf_hash_key *key, const void *bytes, size_t length)
{
    uint64_t v[4] = {
        key->words[0] ^ 0x736f6d6570736575u,
        key->words[1] ^ 0x646f72616e646f6du,
        key->words[0] ^ 0x6c7967656e657261u,
        key->words[1] ^ 0x7465646279746573u,
    };
    const unsigned char *at = bytes;
    uint64_t last = (uint64_t)length << 56;

    for (size_t n = length / 8; n > 0; n--, at += 8) {
        uint64_t word;

        memcpy(&word, at, sizeof word);
        add_word(v, le64toh(word));
    }
    for (size_t i = 0; i < length % 8; i++)
        last |= (uint64_t)at[i] << 8 * i;
    add_word(v, last);
    v[2] ^= 0xff;
    mix(v);
    mix(v);
    mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
