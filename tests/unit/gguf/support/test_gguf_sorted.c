/* Sorting by pointers. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gguf/support/arrays.h"

static const int table[] = {7, -2, 7, 0, 3};
enum { N_ENTRIES = sizeof table / sizeof *table };

static int compare(const void *a, const void *b)
{
    const int *first = *(const int *const *)a, *second = *(const int *const *)b;

    cr_assert(first >= table && first < table + N_ENTRIES);
    cr_assert(second >= table && second < table + N_ENTRIES);
    return (*first > *second) - (*first < *second);
}

/* Each entry is there once, and none beyond the table. */
Test(gguf_sorted, has_the_entries_of_the_table)
{
    for (size_t n = 0; n <= N_ENTRIES; n++) {
        const int **order = (const int **)gguf_sorted(table, n, sizeof *table, compare);
        unsigned seen = 0;

        cr_assert_not_null(order);
        for (size_t i = 0; i < n; i++) {
            cr_assert(order[i] >= table && order[i] < table + n);
            cr_expect(i == 0 || *order[i - 1] <= *order[i]);
            seen |= 1u << (order[i] - table);
        }
        cr_expect_eq(seen, (1u << n) - 1);
        cr_expect_null(order[n], "the place behind the last is not used");
        free(order);
    }
}
