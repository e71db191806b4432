/*
 * The keyed hash, compared with CPython: hash(b"...") with PYTHONHASHSEED=0 is SipHash-1-3 with a
 * key of zeros. Keys must be random.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "gguf/support/keyed_hash.h"

Test(gguf_keyed_hash, is_siphash_1_3)
{
    static const struct {
        const char *text;
        uint64_t hash;
    } list[] = {
        {"a", 0x407448d2b89b1813},
        {"abcdefg", 0x6db12aae9070f506},
        {"abcdefgh", 0x3f7b849c0b8e35ea},
        {"abcdefghi", 0xf89b34a3d11eb6e5},
        {"The quick brown fox jumps over it", 0xc55e85e8803195fe},
    };
    const struct gguf_hash_key zeros = {{0, 0}}, other = {{0, 1}};

    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        const size_t length = strlen(list[i].text);

        cr_expect_eq(gguf_hash(&zeros, list[i].text, length), list[i].hash, "%s", list[i].text);
        cr_expect_neq(gguf_hash(&other, list[i].text, length), list[i].hash, "%s", list[i].text);
    }
}

Test(gguf_keyed_hash, keys_are_random)
{
    struct gguf_hash_key a, b;

    cr_assert_eq(gguf_hash_key_make(&a), 0);
    cr_assert_eq(gguf_hash_key_make(&b), 0);
    cr_expect_neq(a.words[0], b.words[0]);
    cr_expect_neq(a.words[1], b.words[1]);
    cr_expect_neq(gguf_hash(&a, "a", 1), gguf_hash(&b, "a", 1));
}

Test(gguf_keyed_hash, hashes_of_pairs_use_the_key)
{
    const struct gguf_hash_key zeros = {{0, 0}}, key = {{0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f}};

    cr_expect_eq(gguf_hash_pair(&zeros, 5, 7), 0u);
    cr_expect_eq(gguf_hash_pair(&key, 1, 0), 0x9e3779b9u);
    cr_expect_eq(gguf_hash_pair(&key, 0, 1), 0xc2b2ae3du);
}
