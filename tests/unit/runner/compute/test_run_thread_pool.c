/* The thread pool of the runner. */
#include "tests/unit/runner/thread_pool_checks.h"

#include <criterion/criterion.h>

Test(run_thread_pool, checks, .timeout = 120)
{
    for (size_t i = 0; i < thread_pool_check_count; i++) {
        const unsigned n_errors = thread_pool_checks[i].run();

        cr_expect_eq(n_errors, 0, "%s: %u errors", thread_pool_checks[i].name, n_errors);
    }
}
