/* The defaults of sampling: values that the model recommends, then this program's. */
#pragma once

#include "contrib/runner/sampling/sampler.h"
#include "contrib/runner/tree/metadata.h"

#include <math.h>
#include <stdint.h>

/* The values of parameters that the command line does not give. */
#define RUN_SAMPLING_NOT_GIVEN                                                                     \
    {                                                                                              \
        .repeat_penalty = NAN, .repeat_last_n = INT32_MIN, .top_k = UINT32_MAX, .top_p = NAN,      \
        .min_p = NAN, .temperature = NAN                                                           \
    }

/*
 * Fill in what was not given, from the keys general.sampling.* or from the program's defaults.
 * Returns 0, or -EINVAL for a key with a value that is out of range or no number.
 */
int run_sampling_complete(struct run_sampling *sampling, const struct run_metadata *metadata,
                          struct run_failure *failure);
