/* The team of threads of the runner. */
#include "tests/unit/runner/team_checks.h"

#include <criterion/criterion.h>

Test(run_team, checks, .timeout = 120)
{
    for (size_t i = 0; i < team_check_count; i++) {
        const unsigned n_errors = team_checks[i].run();

        cr_expect_eq(n_errors, 0, "%s: %u errors", team_checks[i].name, n_errors);
    }
}
