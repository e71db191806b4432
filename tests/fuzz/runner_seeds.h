/* Small trees of models of every kind that the runner knows, as text for fuzz_runner.c. */
#ifndef GGUFS_TESTS_FUZZ_RUNNER_SEEDS_H
#define GGUFS_TESTS_FUZZ_RUNNER_SEEDS_H

struct runner_seed {
    const char *name;
    const char *text;
};

/* The last of each has no name. */
extern const struct runner_seed runner_seeds[], runner_more_seeds[];

#endif
