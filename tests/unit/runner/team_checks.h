/*
 * Checks of the runner's team of threads. They do not need Criterion, which does not start under
 * ThreadSanitizer: tests/threads/check_team.c runs them alone.
 */
#ifndef GGUFS_TESTS_TEAM_CHECKS_H
#define GGUFS_TESTS_TEAM_CHECKS_H

#include <stddef.h>

struct team_check {
    const char *name;
    unsigned (*run)(void); /* returns the number of errors; starts and ends the team */
};

/* Start a team of 3 threads, for instance as the .init of a suite; run_team_end() is its .fini. */
void team_begin_test(void);

extern const struct team_check team_checks[];
extern const size_t team_check_count;

#endif
