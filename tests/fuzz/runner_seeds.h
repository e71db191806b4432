/* Small trees for every kind of model that the runner supports, as inputs of fuzz_runner.c. */
#ifndef GGUFS_TESTS_FUZZ_RUNNER_SEEDS_H
#define GGUFS_TESTS_FUZZ_RUNNER_SEEDS_H

struct runner_seed {
    const char *name;
    const char *text;
};

/* Each list ends with a seed without name. */
extern const struct runner_seed runner_seeds[], runner_more_seeds[];

#endif
