#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/session.h"

#include <errno.h>
#include <math.h>

#define MOST_TOKENS 2147483647.0

/* Keys as in llama.cpp, and the range and default of each. */
static const struct row {
    const char *key;
    double least, most, usual;
} rows[] = {
    {"general.sampling.penalty_repeat", 0.01, 100, 1},
    {"general.sampling.penalty_last_n", -1, MOST_TOKENS, 64},
    {"general.sampling.top_k", -1, MOST_TOKENS, 40},
    {"general.sampling.top_p", 0, 1, 0.95},
    {"general.sampling.min_p", 0, 1, 0.05},
    {"general.sampling.temp", 0, 1e6, 0.8},
};

enum { PENALTY, LAST_N, TOP_K, TOP_P, MIN_P, TEMPERATURE, N_ROWS };

int run_sampling_complete(struct run_sampling *sampling, const struct run_metadata *metadata,
                          struct run_failure *failure)
{
    static const char *const others[] = {"general.sampling.mirostat",
                                         "general.sampling.xtc_probability"};
    const char *sequence = run_metadata_string(metadata, "general.sampling.sequence");
    double values[N_ROWS];

    if (sequence)
        run_message("metadata: general.sampling.sequence: %s: this is not followed; the order is "
                    "penalties, top_k, top_p, min_p, temperature",
                    sequence);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        double value = 0;
        const int code =
            run_metadata_number(metadata, others[i], RUN_SCALAR, NULL, &value, failure);

        if (code < 0)
            return code;
        if (value != 0)
            run_message(
                "metadata: %s: %.9g: ggufs-run has no such sampler; the other keys are followed",
                others[i], value);
    }
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];
        int code;

        values[i] = row->usual;
        code = run_metadata_number(metadata, row->key, RUN_SCALAR, NULL, &values[i], failure);
        if (code < 0)
            return code;
        if (!(values[i] >= row->least && values[i] <= row->most))
            return run_fail(failure, -EINVAL, "metadata: %s: %.9g is not from %.9g to %.9g",
                            row->key, values[i], row->least, row->most);
    }
    if (isnan(sampling->repeat_penalty))
        sampling->repeat_penalty = (float)values[PENALTY];
    if (sampling->repeat_last_n == INT32_MIN)
        sampling->repeat_last_n = (int32_t)values[LAST_N];
    if (sampling->top_k == UINT32_MAX)
        sampling->top_k = values[TOP_K] < 0 ? 0 : (uint32_t)values[TOP_K]; /* -1: all */
    if (isnan(sampling->top_p))
        sampling->top_p = (float)values[TOP_P];
    if (isnan(sampling->min_p))
        sampling->min_p = (float)values[MIN_P];
    if (isnan(sampling->temperature))
        sampling->temperature = (float)values[TEMPERATURE];
    return 0;
}
