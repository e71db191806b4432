#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/session.h"
#include "contrib/runner/cli/text_output.h"
#include "contrib/runner/compute/thread_pool.h"
#include "dequant/kernels.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#define N_REPETITIONS 3

struct bench {
    struct run_session *session;
    int32_t *tokens;
    /* Tokens per second of each repetition. */
    double prompt[N_REPETITIONS], predict[N_REPETITIONS];
    uint64_t anonymous_bytes; /* the most after any test */
    uint64_t total_bytes;     /* the peak, with the weights' pages */
    uint64_t huge_bytes;      /* of the weights, in huge pages */
};

static double mean(const double rates[N_REPETITIONS])
{
    double sum = 0;

    for (int i = 0; i < N_REPETITIONS; i++)
        sum += rates[i];
    return sum / N_REPETITIONS;
}

static double deviation(const double rates[N_REPETITIONS])
{
    const double middle = mean(rates);
    double sum = 0;

    for (int i = 0; i < N_REPETITIONS; i++)
        sum += (rates[i] - middle) * (rates[i] - middle);
    return sqrt(sum / (N_REPETITIONS - 1));
}

static double rate(uint32_t n, double seconds)
{
    return n / (seconds > 1e-9 ? seconds : 1e-9);
}

static void sample_memory(struct bench *bench)
{
    const struct run_task_files *files = &bench->session->files;
    const uint64_t anonymous_bytes = run_proc_bytes(files->input, "\nRssAnon:");

    if (anonymous_bytes > bench->anonymous_bytes)
        bench->anonymous_bytes = anonymous_bytes;
    bench->total_bytes = run_proc_bytes(files->input, "\nVmHWM:");
    bench->huge_bytes = run_proc_bytes(files->sums, "\nFilePmdMapped:");
}

/* Make the engine's context the tokens before the measured ones. */
static int go_to_depth(struct bench *bench, struct run_failure *failure)
{
    struct run_engine *engine = bench->session->engine;
    const uint32_t depth = bench->session->options->bench_depth;

    if (depth > 0 && run_engine_counts(engine).n_past > depth && run_engine_keeps(engine, depth))
        return run_engine_rewind(engine, depth, failure);
    run_engine_reset(engine);
    run_message_progress("bench: context of %u tokens", depth);
    return run_session_feed(bench->session, bench->tokens, depth, failure);
}

static int measure(struct bench *bench, int repetition, struct run_failure *failure)
{
    struct run_session *session = bench->session;
    const uint32_t n_prompt = session->options->bench_prompt;
    const uint32_t n_predict = session->options->bench_predict;
    const int32_t *tokens = bench->tokens + session->options->bench_depth;
    double started;
    int code;

    code = go_to_depth(bench, failure);
    if (code < 0)
        return code;
    run_message_progress("bench: prompt of %u tokens, %d of %d", n_prompt, repetition + 1,
                         N_REPETITIONS);
    started = run_seconds();
    code = run_session_feed(session, tokens, n_prompt, failure);
    if (code < 0)
        return code;
    bench->prompt[repetition] = rate(n_prompt, run_seconds() - started);
    sample_memory(bench);
    run_message_progress("bench: text of %u tokens, %d of %d", n_predict, repetition + 1,
                         N_REPETITIONS);
    started = run_seconds();
    for (uint32_t i = 0; code == 0 && i < n_predict; i++)
        code = run_session_feed(session, tokens + n_prompt + i, 1, failure);
    bench->predict[repetition] = rate(n_predict, run_seconds() - started);
    sample_memory(bench);
    return code;
}

/* ---- results ---- */

static void print_row(const char *name, uint32_t n, const double rates[N_REPETITIONS])
{
    if (n > 0)
        printf("%-8s  %8u  %12.2f  %10.2f\n", name, n, mean(rates), deviation(rates));
}

static void print_text(const struct bench *bench)
{
    const struct run_session *session = bench->session;
    const struct run_options *options = session->options;

    printf("%s, %.1f MB of weights, %u threads, batches of %u, after %u tokens\n"
           "test        tokens      tokens/s   deviation\n",
           run_metadata_architecture(session->tree.metadata),
           (double)run_weights_mapped_bytes(session->tree.weights) / 1e6, run_thread_pool_size(),
           options->n_batch, options->bench_depth);
    print_row("prompt", options->bench_prompt, bench->prompt);
    print_row("text", options->bench_predict, bench->predict);
    printf("memory        %.1f MB anonymous, %.1f MB in all, %.1f MB of the weights in huge pages\n"
           "cache         %.1f MB of keys and values, %.1f MB of states\n",
           (double)bench->anonymous_bytes / 1e6, (double)bench->total_bytes / 1e6,
           (double)bench->huge_bytes / 1e6,
           (double)run_engine_counts(session->engine).cache_bytes / 1e6,
           (double)run_engine_counts(session->engine).state_bytes / 1e6);
}

static void print_json_row(const char *name, uint32_t n, const double rates[N_REPETITIONS])
{
    printf("\"%s\":{\"tokens\":%u,\"tokens_per_second\":%.9g,\"deviation\":%.9g},", name, n,
           n > 0 ? mean(rates) : 0, n > 0 ? deviation(rates) : 0);
}

static void print_json(const struct bench *bench)
{
    const struct run_session *session = bench->session;
    const struct run_options *options = session->options;

    run_print_json_string("{\"architecture\":", run_metadata_architecture(session->tree.metadata),
                          strlen(run_metadata_architecture(session->tree.metadata)));
    printf(",\"weights_bytes\":%" PRIu64 ",\"token_bytes\":%" PRIu64 ",\"threads\":%u,"
           "\"batch\":%u,\"depth\":%u,\"kernels\":\"%s\",\"load_seconds\":%.9g,"
           "\"repetitions\":%d,",
           (uint64_t)run_weights_mapped_bytes(session->tree.weights),
           (uint64_t)run_engine_counts(session->engine).token_bytes, run_thread_pool_size(),
           options->n_batch, options->bench_depth, dequant_chosen_kernels()->name,
           session->load_seconds, N_REPETITIONS);
    print_json_row("prompt", options->bench_prompt, bench->prompt);
    print_json_row("text", options->bench_predict, bench->predict);
    printf("\"memory\":{\"cache_bytes\":%" PRIu64 ",\"state_bytes\":%" PRIu64
           ",\"anonymous_bytes\":%" PRIu64 ",\"total_bytes\":%" PRIu64
           ",\"huge_page_bytes\":%" PRIu64 "}}\n",
           (uint64_t)run_engine_counts(session->engine).cache_bytes,
           (uint64_t)run_engine_counts(session->engine).state_bytes, bench->anonymous_bytes,
           bench->total_bytes, bench->huge_bytes);
}

int run_task_bench(struct run_session *session, struct run_failure *failure)
{
    const struct run_options *options = session->options;
    const size_t n = (size_t)options->bench_depth + options->bench_prompt + options->bench_predict;
    struct bench bench = {
        .session = session,
        .tokens = calloc(n, sizeof *bench.tokens),
    };
    int code = 0;

    if (!bench.tokens)
        return run_fail_memory(failure);
    for (size_t i = 0; i < n; i++) /* spread over the vocabulary */
        bench.tokens[i] = (int32_t)((uint32_t)i * 2654435761U % session->n_vocab);
    if (n > session->n_context)
        code = run_fail(failure, -ERANGE, "the context has %u tokens, the benchmark needs %zu",
                        session->n_context, n);
    /* Warm up: do not measure one-time work. */
    if (code == 0)
        code = run_session_feed(session, bench.tokens, 1, failure);
    run_read_ahead_finish(&session->read_ahead);
    for (int i = 0; code == 0 && i < N_REPETITIONS; i++)
        code = measure(&bench, i, failure);
    run_message_progress("%s", "");
    if (code == 0) {
        (options->is_json ? print_json : print_text)(&bench);
        code = run_flush_stdout(failure);
    }
    free(bench.tokens);
    return code;
}
