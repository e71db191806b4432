/*
 * A table of broken files, one row for each rule that one breaks: every row is to be refused with
 * the right code, at the right place, in words that name what is wrong, the value and the limit.
 */
#ifndef GGUFS_TESTS_REFUSAL_H
#define GGUFS_TESTS_REFUSAL_H

#include "tests/unit/model_file.h"

#include <criterion/parameterized.h>

#define P(exponent) (1ull << (exponent))

struct refusal {
    const char *breaks;
    struct model_bytes (*build)(uint64_t argument);
    uint64_t argument;
    int code;
    uint64_t file_offset;
    const char *says[5]; /* what the message must hold */
};

/* Opens the file of the row; the test fails if it is accepted or refused in another way. */
void refusal_expect(const struct refusal *row);

/*
 * A test for each row of a table. It gets the row's number, because pointers of the process that
 * collects the tests mean nothing in the one that runs them.
 */
#define REFUSAL_TESTS(suite, test, table)                                                          \
    ParameterizedTestParameters(suite, test)                                                       \
    {                                                                                              \
        static size_t numbers[COUNT(table)];                                                       \
                                                                                                   \
        for (size_t i = 0; i < COUNT(table); i++)                                                  \
            numbers[i] = i;                                                                        \
        return cr_make_param_array(size_t, numbers, COUNT(table));                                 \
    }                                                                                              \
    ParameterizedTest(size_t *row, suite, test)                                                    \
    {                                                                                              \
        refusal_expect(&table[*row]);                                                              \
    }

#endif
