/* Small trees for every kind of model that the runner supports, as inputs of fuzz_runner.c. */
#pragma once

struct runner_seed {
    const char *name;
    const char *text;
};

/* Each list ends with a seed without name. */
extern const struct runner_seed runner_seeds[], runner_more_seeds[];
