#include "contrib/runner/cli/text_output.h"

#include <criterion/criterion.h>
#include <string.h>

static size_t found(const char *const *texts, size_t n, const char *bytes, bool *is_found)
{
    size_t n_free;

    *is_found = run_stop_texts_find(texts, n, bytes, strlen(bytes), &n_free);
    return n_free;
}

Test(run_stop_texts, complete_and_partial_matches)
{
    static const struct {
        const char *bytes;
        bool is_found;
        size_t n_free;
    } cases[] = {
        {"", false, 0},        {"hello", false, 5},       {"hello\n", false, 5},
        {"a\nUser", false, 1}, {"a\nUser:", true, 1},     {"\nUser: x", true, 0},
        {"a\n\n", false, 2},   {"a\nUser:b###", true, 1}, {"a###\nUser:", true, 1},
        {"##", false, 0},      {"# ##x", false, 5},       {"a#\nUse", false, 2},
    };
    static const char *const texts[] = {"\nUser:", "", "###"};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool is_found;

        cr_expect_eq(found(texts, 3, cases[i].bytes, &is_found), cases[i].n_free, "\"%s\"",
                     cases[i].bytes);
        cr_expect_eq(is_found, cases[i].is_found, "\"%s\"", cases[i].bytes);
    }
}

Test(run_stop_texts, empty_list)
{
    bool is_found;

    cr_expect_eq(found(NULL, 0, "text", &is_found), 4);
    cr_expect_not(is_found);
}

/* The output does not depend on how the text is divided into pieces. */
Test(run_stop_texts, pieces_of_any_size)
{
    static const char *const texts[] = {"aab", "END"};
    const char *text = "aaaaab";

    for (size_t step = 1; step <= strlen(text); step++) {
        char held[16] = "", out[16] = "";
        bool is_found = false;

        for (size_t at = 0; at < strlen(text) && !is_found; at += step) {
            size_t n_free;

            strncat(held, text + at, step);
            is_found = run_stop_texts_find(texts, 2, held, strlen(held), &n_free);
            strncat(out, held, n_free);
            memmove(held, held + n_free, strlen(held + n_free) + 1);
        }
        cr_expect(is_found);
        cr_expect_str_eq(out, "aaa", "pieces of %zu", step);
    }
}
