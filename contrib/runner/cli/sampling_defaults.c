#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/session.h"

#include <errno.h>
#include <math.h>

/* Keys as in llama.cpp, the option of each, whose range counts, and its default. */
static const struct row {
    const char *key, *option;
    double usual;
} rows[] = {
    {"general.sampling.penalty_repeat", "--repeat-penalty", 1},
    {"general.sampling.penalty_last_n", "--repeat-last-n", 64},
    {"general.sampling.top_k", "--top-k", 40},
    {"general.sampling.top_p", "--top-p", 0.95},
    {"general.sampling.min_p", "--min-p", 0.05},
    {"general.sampling.temp", "--temp", 0.8},
};

/* Read the value of a row, and store it unless the option was given. */
static int complete(const struct row *row, struct run_sampling *sampling,
                    const struct run_metadata *metadata, struct run_failure *failure)
{
    const struct gguf_option *option =
        gguf_option_find(&run_command_line, row->option, strlen(row->option));
    void *member = (char *)sampling + option->offset - offsetof(struct run_options, sampling);
    const bool is_unsigned = option->kind == GGUF_OPTION_UINT32;
    const double least = is_unsigned ? -1 : option->least; /* -1: all */
    double value = row->usual;
    const int code = run_metadata_number(metadata, row->key, RUN_SCALAR, NULL, &value, failure);

    if (code < 0)
        return code;
    if (!(value >= least && value <= option->most))
        return run_fail(failure, -EINVAL, "metadata: %s: %.9g is not from %.9g to %.9g", row->key,
                        value, least, option->most);
    if (option->kind == GGUF_OPTION_FLOAT && isnan(*(float *)member))
        *(float *)member = (float)value;
    else if (option->kind == GGUF_OPTION_INT32 && *(int32_t *)member == INT32_MIN)
        *(int32_t *)member = (int32_t)value;
    else if (is_unsigned && *(uint32_t *)member == UINT32_MAX)
        *(uint32_t *)member = value < 0 ? 0 : (uint32_t)value;
    return 0;
}

int run_sampling_complete(struct run_sampling *sampling, const struct run_metadata *metadata,
                          struct run_failure *failure)
{
    static const char *const others[] = {"general.sampling.mirostat",
                                         "general.sampling.xtc_probability"};
    const char *sequence = run_metadata_string(metadata, "general.sampling.sequence");
    int code = 0;

    if (sequence)
        run_message("metadata: general.sampling.sequence: %s: this is not followed; the order is "
                    "penalties, top_k, top_p, min_p, temperature",
                    sequence);
    for (size_t i = 0; code == 0 && i < sizeof others / sizeof *others; i++) {
        double value = 0;

        code = run_metadata_number(metadata, others[i], RUN_SCALAR, NULL, &value, failure);
        if (code == 0 && value != 0)
            run_message(
                "metadata: %s: %.9g: ggufs-run has no such sampler; the other keys are followed",
                others[i], value);
    }
    for (size_t i = 0; code == 0 && i < sizeof rows / sizeof *rows; i++)
        code = complete(&rows[i], sampling, metadata, failure);
    return code;
}
