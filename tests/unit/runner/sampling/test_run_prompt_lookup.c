#include "contrib/runner/sampling/drafts.h"

#include <criterion/criterion.h>
#include <string.h>

static struct run_lookup lookup;
static int32_t draft[64];

static void end(void)
{
    run_lookup_free(&lookup);
}

TestSuite(run_prompt_lookup, .fini = end);

static void add(const char *text)
{
    for (; *text != '\0'; text++)
        cr_assert_eq(run_lookup_add(&lookup, *text), 0);
}

/* Check the draft of up to `most` tokens. */
static void expect(size_t most, const char *expected)
{
    const size_t n = run_lookup_find(&lookup, most, draft);

    cr_assert_eq(n, strlen(expected), "\"%s\", not %zu tokens", expected, n);
    for (size_t i = 0; i < n; i++)
        cr_expect_eq(draft[i], expected[i], "\"%s\", token %zu is %c", expected, i, draft[i]);
}

Test(run_prompt_lookup, copies_what_followed)
{
    expect(4, "");
    add("the cat sat. the c");
    expect(4, "at s");
    expect(1, "a");
    expect(0, "");
}

Test(run_prompt_lookup, needs_a_whole_ngram)
{
    add("abcdxbc");
    expect(4, "");
    add("d");
    expect(4, "xbcd");
}

Test(run_prompt_lookup, prefers_the_longest_context_then_the_last)
{
    add("1234a 9234b 1234");
    expect(1, "a");
    add(" 8234");
    expect(1, " ");
}

Test(run_prompt_lookup, forgets_the_last_token)
{
    add("abcd abc");
    run_lookup_drop(&lookup);
    expect(1, "");
    add("c");
    expect(4, "d ab");
    for (int i = 0; i < 10; i++)
        run_lookup_drop(&lookup);
    cr_expect_eq(lookup.text.n, 0u);
    add("abcxabc");
    expect(1, "x");
}

Test(run_prompt_lookup, continues_periods)
{
    add("xxx");
    expect(4, "");
    add("x");
    expect(5, "xxxxx");
    add("abcabc");
    expect(8, "abcabcab");
}

Test(run_prompt_lookup, limits_a_search)
{
    /* 40 places later than the first one, which alone has the longer context. */
    add("0abc!");
    for (int i = 0; i < 40; i++)
        add("1abc?");
    add("0abc");
    expect(1, "?");
}

/* Compare with a search of the whole text, in which each n-gram occurs a few times. */
Test(run_prompt_lookup, finds_all_places)
{
    enum { N = 5000, N_TOKENS = 12 };
    uint32_t state = 1;

    for (size_t n = 0; n < N; n++) {
        const int32_t *text = lookup.text.list;
        size_t longest = RUN_NGRAM - 1, best = 0;

        for (size_t at = n - (n > 0); at >= RUN_NGRAM; at--) {
            size_t common = 0;

            while (common < at && text[at - 1 - common] == text[n - 1 - common])
                common++;
            if (common > longest) {
                longest = common;
                best = at;
            }
        }
        cr_assert_eq(run_lookup_find(&lookup, 1, draft), best > 0, "%zu", n);
        if (best > 0)
            cr_assert_eq(draft[0], text[best], "%zu", n);
        state = state * 1664525 + 1013904223;
        cr_assert_eq(run_lookup_add(&lookup, (int32_t)((state >> 16) % N_TOKENS)), 0);
    }
}
