/* Simulated generations, with costs of passes as measured on models and worse ones. */
#include "contrib/runner/sampling/drafts.h"

#include <criterion/criterion.h>
#include <math.h>

enum { MOST = 15 };

/* The seconds of a pass of n tokens: 1 for one, and `more` for each further one. */
static double pass_seconds(uint32_t n, double more)
{
    return 1 + more * (n - 1);
}

static uint32_t random_state = 1;

static double random_fraction(void)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) / 16777216.0;
}

/*
 * Generate n_tokens. Each draft token is right with a probability of `right`, if all before it are.
 * Returns the speed in tokens per second, which is 1 without drafts.
 */
static double simulate(struct run_draft_length *draft, uint32_t n_tokens, double right, double more)
{
    double seconds = 0;
    uint32_t n = 0;

    while (n < n_tokens) {
        const uint32_t n_drafted = run_draft_length_get(draft);
        const double pass = pass_seconds(1 + n_drafted, more);
        uint32_t n_accepted = 0;

        while (n_accepted < n_drafted && random_fraction() < right)
            n_accepted++;
        run_draft_length_learn(draft, n_drafted, n_accepted, pass);
        seconds += pass;
        n += 1 + n_accepted;
    }
    return n / seconds;
}

/* The cost of a further token: of large dense models, of mixtures of experts, of no gain at all. */
static const double costs[] = {0.05, 0.15, 0.5, 1};

Test(run_draft_length, wrong_drafts_cost_little)
{
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        for (int percent = 0; percent <= 40; percent += 10) {
            struct run_draft_length draft;
            double speed;

            run_draft_length_begin(&draft, MOST);
            speed = simulate(&draft, 200, percent / 100.0, costs[i]);
            cr_expect_gt(speed, 0.97, "%d %% right, cost %g: %g", percent, costs[i], speed);
        }
    }
}

Test(run_draft_length, right_drafts_pay)
{
    struct run_draft_length draft;

    run_draft_length_begin(&draft, MOST);
    cr_expect_gt(simulate(&draft, 200, 1, 0.05), 6);
    cr_expect_eq(run_draft_length_get(&draft), MOST);
    run_draft_length_begin(&draft, MOST);
    cr_expect_gt(simulate(&draft, 1000, 0.8, 0.05), 2);
    cr_expect_gt(simulate(&draft, 1000, 0.8, 0.15), 1.5);
}

Test(run_draft_length, text_that_stops_repeating)
{
    struct run_draft_length draft;

    run_draft_length_begin(&draft, MOST);
    for (int i = 0; i < 3; i++) {
        simulate(&draft, 300, 1, 0.1);
        cr_expect_gt(simulate(&draft, 200, 0, 0.1), 0.97);
        cr_expect_gt(simulate(&draft, 300, 1, 0.1), 3);
    }
}

Test(run_draft_length, disturbances)
{
    struct run_draft_length draft;

    run_draft_length_begin(&draft, MOST);
    run_draft_length_learn(&draft, 0, 0, 1);
    run_draft_length_learn(&draft, 1, 0, 1e6); /* counts as 2 */
    cr_expect_eq(run_draft_length_get(&draft), 0);
    simulate(&draft, 200, 1, 0.1);
    cr_expect_eq(run_draft_length_get(&draft), MOST);
    /* The first pass was slow, the drafts are not: it no longer counts. */
    run_draft_length_begin(&draft, MOST);
    run_draft_length_learn(&draft, 0, 0, 100);
    cr_expect_gt(simulate(&draft, 200, 0.1, 0.5), 0.95);
}

Test(run_draft_length, limits)
{
    struct run_draft_length draft;

    run_draft_length_begin(&draft, 0);
    cr_expect_eq(run_draft_length_get(&draft), 0);
    run_draft_length_learn(&draft, 0, 0, 1);
    cr_expect_eq(run_draft_length_get(&draft), 0);
    run_draft_length_begin(&draft, 2);
    cr_expect_eq(run_draft_length_get(&draft), 0, "before the time of a pass is known");
    simulate(&draft, 100, 1, 0.1);
    cr_expect_eq(run_draft_length_get(&draft), 2);
    run_draft_length_learn(&draft, 2, 0, 0); /* a clock that stands still */
    cr_expect(isfinite(draft.budget));
}
