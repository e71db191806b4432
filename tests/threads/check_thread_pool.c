/* Checks the thread pool of the runner, under ThreadSanitizer as well. */
#include "tests/unit/runner/thread_pool_checks.h"

#include <stdio.h>

int main(void)
{
    size_t n_failed = 0;

    for (size_t i = 0; i < thread_pool_check_count; i++) {
        const unsigned n_errors = thread_pool_checks[i].run();

        if (n_errors > 0)
            printf("%s: %u errors\n", thread_pool_checks[i].name, n_errors);
        n_failed += n_errors > 0;
    }
    printf("%zu passed, %zu failed\n", thread_pool_check_count - n_failed, n_failed);
    return n_failed > 0;
}
