/* Sets of texts with many common prefixes, against a search of all texts. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "contrib/runner/tokenizer/prefix_trie.h"
#include "tests/unit/gguf/model_file.h"

/* Steps that a search of n texts may take: a binary search and a walk of a skew-binary list. */
static size_t most_steps(size_t n)
{
    size_t levels = 1;

    while (n >>= 1)
        levels++;
    return 4 * levels;
}

/* Return the lowest id of the texts of that length that `text` begins with, or -1. */
static int32_t expected_id(const char (*texts)[8], size_t n, const char *text, size_t length)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(texts[i]) == length && memcmp(texts[i], text, length) == 0)
            return (int32_t)i;
    return -1;
}

Test(run_prefix_trie, finds_every_prefix_of_random_texts)
{
    uint64_t state = 3;

    for (unsigned round = 0; round < 200; round++) {
        struct run_prefix_trie trie = {0};
        char texts[40][8] = {{0}}, text[12] = {0};
        const size_t n = model_file_random(&state) % 40;
        const struct run_prefix *found;

        for (size_t i = 0; i < n; i++)
            for (size_t j = 0, length = model_file_random(&state) % 8; j < length; j++)
                texts[i][j] = (char)(model_file_random(&state) % 3 == 0 ? 0xe9 : 'a');
        for (size_t i = n; i-- > 0;)
            cr_assert_eq(
                run_prefix_trie_add(&trie, texts[i], (uint32_t)strlen(texts[i]), (int32_t)i), 0);
        run_prefix_trie_sort(&trie);
        for (size_t j = 0; j < sizeof text - 1; j++)
            text[j] = (char)(model_file_random(&state) % 3 == 0 ? 0xe9 : 'a');
        for (size_t length = 0; length < sizeof text; length++) {
            found = run_prefix_trie_longest(&trie, text, length, NULL);
            for (size_t m = length; m > 0; m--) {
                const int32_t id = expected_id((const char(*)[8])texts, n, text, m);

                if (id < 0)
                    continue;
                cr_assert_not_null(found, "round %u: %zu of %zu bytes", round, m, length);
                cr_expect_eq(found->length, m);
                cr_expect_eq(found->id, id);
                found = run_prefix_trie_shorter(&trie, found);
            }
            cr_expect_null(found);
        }
        run_prefix_trie_free(&trie);
    }
}

/* The text is longer than the list of equal tokens, so visiting each of them would show. */
Test(run_prefix_trie, equal_texts_are_one)
{
    enum { N = 100000 };
    struct run_prefix_trie trie = {0};
    size_t n_steps = 0;

    for (int32_t id = N; id-- > 0;)
        cr_assert_eq(run_prefix_trie_add(&trie, "e", 1, id), 0);
    cr_assert_eq(run_prefix_trie_add(&trie, "ef", 2, N), 0);
    run_prefix_trie_sort(&trie);
    cr_expect_eq(trie.n, 2);
    cr_expect_eq(run_prefix_trie_longest(&trie, "ee", 2, &n_steps)->id, 0);
    cr_expect_eq(run_prefix_trie_longest(&trie, "eff", 3, &n_steps)->id, N);
    cr_expect_leq(n_steps, 2 * most_steps(2));
    run_prefix_trie_free(&trie);
}

/* "a", "aa", "aaa" …: a text with another byte in the middle has half of them as prefixes. */
Test(run_prefix_trie, chains_of_prefixes_take_logarithmic_time)
{
    enum { N = 20000 };
    struct run_prefix_trie trie = {0};
    char *text = malloc(2 * N);

    cr_assert_not_null(text);
    memset(text, 'a', 2 * N);
    for (uint32_t length = 1; length <= N; length++)
        cr_assert_eq(run_prefix_trie_add(&trie, text, length, (int32_t)length), 0);
    run_prefix_trie_sort(&trie);
    for (size_t i = 1; i <= N; i += i < 10 ? 1 : 1111) {
        char *other = strndup(text, 2 * N);
        size_t n_steps = 0;

        cr_assert_not_null(other);
        other[i] = 'b';
        cr_expect_eq(run_prefix_trie_longest(&trie, other, 2 * N, &n_steps)->id, (int32_t)i);
        cr_expect_leq(n_steps, most_steps(N), "%zu steps for %zu bytes", n_steps, i);
        free(other);
    }
    run_prefix_trie_free(&trie);
    free(text);
}
