#include "contrib/runner/cli/tasks.h"
#include "contrib/runner/sampling/xoshiro.h"

#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define N_REPETITIONS 3

/* Tokens per second of each repetition. */
struct rates {
    double of[N_REPETITIONS];
};

static double mean(const struct rates *rates)
{
    double sum = 0;

    for (int i = 0; i < N_REPETITIONS; i++)
        sum += rates->of[i];
    return sum / N_REPETITIONS;
}

static double deviation(const struct rates *rates)
{
    const double middle = mean(rates);
    double sum = 0;

    for (int i = 0; i < N_REPETITIONS; i++)
        sum += (rates->of[i] - middle) * (rates->of[i] - middle);
    return sqrt(sum / (N_REPETITIONS - 1));
}

static double rate(uint32_t n, double seconds)
{
    return n / (seconds > 1e-9 ? seconds : 1e-9);
}

/* Random tokens. Their values matter only for the choice of experts. */
static int measure(struct run_session *session, const int32_t *tokens, int repetition,
                   struct rates *prompt, struct rates *predict, struct run_failure *failure)
{
    const uint32_t n_prompt = session->options->bench_prompt;
    const uint32_t n_predict = session->options->bench_predict;
    double started = run_seconds();
    int code;

    run_engine_reset(session->engine);
    code = run_session_feed(session, tokens, n_prompt, failure);
    if (code < 0)
        return code;
    prompt->of[repetition] = rate(n_prompt, run_seconds() - started);
    started = run_seconds();
    for (uint32_t i = 0; code == 0 && i < n_predict; i++)
        code = run_session_feed(session, tokens + n_prompt + i, 1, failure);
    predict->of[repetition] = rate(n_predict, run_seconds() - started);
    return code;
}

static void print_row(const char *name, uint32_t n, const struct rates *rates)
{
    if (n > 0)
        printf("%-8s  %8u  %12.2f  %10.2f\n", name, n, mean(rates), deviation(rates));
}

static void add_row(struct run_json *json, const char *name, uint32_t n, const struct rates *rates)
{
    run_json_begin(json, name);
    run_json_integer(json, "tokens", n);
    run_json_number(json, "tokens_per_second", n > 0 ? mean(rates) : 0);
    run_json_number(json, "deviation", n > 0 ? deviation(rates) : 0);
    run_json_end(json);
}

static int print_results(const struct run_session *session, const struct rates *prompt,
                         const struct rates *predict)
{
    const struct run_options *options = session->options;
    const int n_threads = options->n_threads > 0 ? (int)options->n_threads : omp_get_max_threads();
    const char *architecture = run_metadata_architecture(session->tree.metadata);
    const uint64_t n_bytes = run_weights_mapped_bytes(session->tree.weights);
    struct run_json json = {0};

    if (!options->is_json) {
        printf("%s, %.1f MB of weights, %d threads, batches of %u\n"
               "test        tokens      tokens/s   deviation\n",
               architecture, (double)n_bytes / 1e6, n_threads, options->n_batch);
        print_row("prompt", options->bench_prompt, prompt);
        print_row("text", options->bench_predict, predict);
        return EX_OK;
    }
    run_json_begin(&json, NULL);
    run_json_string(&json, "architecture", architecture, strlen(architecture));
    run_json_integer(&json, "weights_bytes", n_bytes);
    run_json_integer(&json, "threads", (uint64_t)n_threads);
    run_json_integer(&json, "batch", options->n_batch);
    run_json_number(&json, "load_seconds", session->load_seconds);
    run_json_integer(&json, "repetitions", N_REPETITIONS);
    add_row(&json, "prompt", options->bench_prompt, prompt);
    add_row(&json, "text", options->bench_predict, predict);
    run_json_end(&json);
    return run_print_json(session, &json);
}

int run_task_bench(struct run_session *session)
{
    const size_t n = (size_t)session->options->bench_prompt + session->options->bench_predict;
    struct rates prompt = {0}, predict = {0};
    struct run_xoshiro random;
    struct run_failure failure;
    int32_t *tokens = calloc(n, sizeof *tokens);
    int status, code = 0;

    if (!tokens)
        return run_session_complain(session, run_fail_memory(&failure), &failure);
    run_xoshiro_seed(&random, 1);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)(run_xoshiro_next(&random) % session->n_vocab);
    if (n > session->n_context)
        code = run_fail(&failure, -ERANGE, "the context has %u tokens, the benchmark needs %zu",
                        session->n_context, n);
    /* Warm up: do not measure one-time work. */
    if (code == 0)
        code = run_session_feed(session, tokens, 1, &failure);
    for (int i = 0; code == 0 && i < N_REPETITIONS; i++)
        code = measure(session, tokens, i, &prompt, &predict, &failure);
    if (code == 0)
        status = print_results(session, &prompt, &predict);
    else
        status = run_session_complain(session, code, &failure);
    free(tokens);
    return status;
}
