#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/tasks.h"
#include "contrib/runner/cli/text_output.h"

#include <endian.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

/* Limit of the logits in memory, in bytes. */
#define LOGITS_BYTES ((size_t)64 << 20)

/* The number of tokens to feed at once if all logits are wanted. */
static size_t rows_at_once(const struct run_session *session)
{
    const size_t row_bytes = session->n_vocab * sizeof(float);
    const size_t n_fit = row_bytes < LOGITS_BYTES ? LOGITS_BYTES / row_bytes : 1;

    return n_fit < session->options->n_batch ? n_fit : session->options->n_batch;
}

/* ---- the logits of given tokens ---- */

static int read_tokens(const struct run_task_files *files, struct run_ids *ids,
                       struct run_failure *failure)
{
    struct gguf_buffer bytes = {0};
    int code = run_task_files_read(files, &bytes, failure);

    if (code == 0 && (bytes.length == 0 || bytes.length % sizeof(int32_t) != 0))
        code = run_fail_elsewhere(failure, -EINVAL, "%s: %zu bytes are not ids of 4 bytes each",
                                  files->input_name, bytes.length);
    for (size_t i = 0; code == 0 && i < bytes.length; i += sizeof(int32_t)) {
        uint32_t id;

        memcpy(&id, bytes.bytes + i, sizeof id);
        if (run_ids_add(ids, (int32_t)le32toh(id)) < 0)
            code = run_fail_memory(failure);
    }
    gguf_buffer_free(&bytes);
    return code;
}

static int write_logits(struct run_session *session, const struct run_ids *ids, FILE *file,
                        struct run_failure *failure)
{
    const size_t n_at_once = rows_at_once(session);
    float *rows = calloc(n_at_once * session->n_vocab, sizeof *rows);
    int code = 0;

    if (!rows)
        return run_fail_memory(failure);
    for (size_t at = 0; code == 0 && at < ids->n;) {
        const size_t n = ids->n - at < n_at_once ? ids->n - at : n_at_once;

        code = run_engine_feed(session->engine, ids->list + at, n, RUN_LOGITS_ALL, rows, failure);
        for (size_t i = 0; code == 0 && i < n * session->n_vocab; i++) {
            uint32_t bits;

            memcpy(&bits, &rows[i], sizeof bits);
            bits = htole32(bits);
            memcpy(&rows[i], &bits, sizeof bits);
        }
        if (code == 0 &&
            fwrite(rows, sizeof *rows, n * session->n_vocab, file) != n * session->n_vocab)
            code = run_fail_elsewhere(failure, -EIO, "%s: %s", session->options->logits_file,
                                      strerror(errno));
        at += n;
    }
    free(rows);
    return code;
}

/* Write to stdout or the file. A regular file is replaced; it is empty if not all was written. */
static int write_output(struct run_session *session, const struct run_ids *ids,
                        struct run_failure *failure)
{
    const char *name = session->options->logits_file;
    const int fd = session->files.output;
    FILE *file = fd == STDOUT_FILENO ? stdout : fdopen(fd, "w");
    int code;

    if (!file)
        return run_fail_memory(failure);
    if (file != stdout && ftruncate(fd, 0) != 0 && errno != EINVAL) /* EINVAL: a device or pipe */
        return run_fail_elsewhere(failure, -EIO, "%s: %s", name, strerror(errno));
    code = write_logits(session, ids, file, failure);
    if (fflush(file) != 0 && code == 0)
        code = file == stdout ? run_fail_stdout(failure, errno)
                              : run_fail_elsewhere(failure, -EIO, "%s: %s", name, strerror(errno));
    if (file == stdout)
        return code;
    if (code < 0)
        (void)!ftruncate(fd, 0);
    session->files.output = -1;
    if (fclose(file) != 0 && code == 0)
        code = run_fail_elsewhere(failure, -EIO, "%s: %s", name, strerror(errno));
    return code;
}

static int check_length(const struct run_session *session, size_t n, struct run_failure *failure)
{
    if (n <= session->n_context)
        return 0;
    return run_fail_elsewhere(
        failure, -ERANGE,
        "%s: %zu tokens, more than the context of %u; -c N makes the context larger",
        session->files.input_name, n, session->n_context);
}

int run_task_logits(struct run_session *session)
{
    struct run_ids ids = {0};
    struct run_failure failure;
    int code = read_tokens(&session->files, &ids, &failure);

    if (code == 0)
        code = check_length(session, ids.n, &failure);
    if (code == 0)
        code = write_output(session, &ids, &failure);
    run_ids_free(&ids);
    return code < 0 ? run_session_complain(session, code, &failure) : EX_OK;
}

/* ---- perplexity ---- */

/* The smallest window in tokens: one token of it is counted. */
#define SMALLEST_WINDOW 3

/* The sum of -log p over the counted tokens. */
struct score {
    double sum, sum_of_squares;
    size_t n;
};

static double surprise(const float *logits, uint32_t n_vocab, int32_t token)
{
    float highest = logits[0];
    double sum = DBL_MIN; /* never 0 */

    for (uint32_t i = 1; i < n_vocab; i++)
        highest = logits[i] > highest ? logits[i] : highest;
    for (uint32_t i = 0; i < n_vocab; i++)
        sum += exp((double)logits[i] - (double)highest);
    return log(sum) + (double)highest - (double)logits[token];
}

/* Add -log p of a token. Fails if it has no row in the logits, or if they give no number. */
static int count_token(struct score *score, const float *logits, uint32_t n_vocab, int32_t token,
                       struct run_failure *failure)
{
    double value;

    if (token < 0 || (uint32_t)token >= n_vocab)
        return run_fail(failure, -EINVAL,
                        "id %d of the text is not in the vocabulary of %u that the weights have",
                        token, n_vocab);
    value = surprise(logits, n_vocab, token);
    if (!isfinite(value))
        return run_fail(failure, -EDOM,
                        "the logits are NaN or infinite after token %zu: the model or its "
                        "quantization is damaged; ggufs --check --data finds the weights",
                        score->n);
    score->sum += value;
    score->sum_of_squares += value * value;
    score->n++;
    return 0;
}

/* Score the second half of a window; the first half is its context. */
static int score_window(struct run_session *session, const int32_t *tokens, size_t n, float *rows,
                        struct score *score, struct run_failure *failure)
{
    const size_t n_at_once = rows_at_once(session);
    size_t at = n / 2;
    int code;

    run_engine_reset(session->engine);
    code = run_engine_feed(session->engine, tokens, at, RUN_LOGITS_NONE, NULL, failure);
    while (code == 0 && at + 1 < n) {
        const size_t n_left = n - 1 - at, n_now = n_left < n_at_once ? n_left : n_at_once;

        code = run_engine_feed(session->engine, tokens + at, n_now, RUN_LOGITS_ALL, rows, failure);
        for (size_t i = 0; code == 0 && i < n_now; i++)
            code = count_token(score, rows + i * session->n_vocab, session->n_vocab,
                               tokens[at + i + 1], failure);
        at += n_now;
    }
    return code;
}

static int score_text(struct run_session *session, struct run_ids *ids, size_t n_window,
                      struct score *score, struct run_failure *failure)
{
    const int32_t bos = run_tokenizer_special(session->tokenizer)->bos;
    const bool begins_with_bos = ids->list[0] == bos;
    const size_t n_windows = ids->n / n_window;
    float *rows = calloc(rows_at_once(session) * session->n_vocab, sizeof *rows);
    int code = 0;

    if (!rows)
        return run_fail_memory(failure);
    for (size_t i = 0; code == 0 && i < n_windows; i++) {
        int32_t *tokens = ids->list + i * n_window;

        if (begins_with_bos)
            tokens[0] = bos;
        code = score_window(session, tokens, n_window, rows, score, failure);
        if (code == 0)
            run_message_progress("window %zu of %zu, perplexity %.4f", i + 1, n_windows,
                                 exp(score->sum / (double)score->n));
    }
    run_message_progress("%s", "");
    free(rows);
    return code;
}

static int print_perplexity(const struct run_session *session, const struct score *score,
                            size_t n_window, size_t n_windows, double seconds)
{
    const double mean = score->sum / (double)score->n;
    const double variance = score->sum_of_squares / (double)score->n - mean * mean;
    const double error =
        score->n > 1 && variance > 0 ? sqrt(variance / (double)(score->n - 1)) * exp(mean) : 0;

    if (!session->options->is_json) {
        printf("perplexity %.4f +/- %.4f, %zu window%s of %zu tokens, %zu token%s counted\n",
               exp(mean), error, n_windows, n_windows == 1 ? "" : "s", n_window, score->n,
               score->n == 1 ? "" : "s");
        return EX_OK;
    }
    run_json_begin(NULL);
    run_json_number("perplexity", exp(mean));
    run_json_number("error", error);
    run_json_integer("windows", n_windows);
    run_json_integer("window_tokens", n_window);
    run_json_integer("counted_tokens", score->n);
    run_json_number("seconds", seconds);
    run_json_end();
    return run_finish_json(session);
}

static int refuse_window(const struct run_session *session, size_t n, struct run_failure *failure)
{
    return run_fail_elsewhere(
        failure, -EINVAL, "%s: a window of %zu token%s is too small for a perplexity; it needs %d",
        session->files.input_name, n, n == 1 ? "" : "s", SMALLEST_WINDOW);
}

int run_task_perplexity(struct run_session *session)
{
    struct gguf_buffer text = {0};
    struct run_ids ids = {0};
    struct score score = {0};
    struct run_failure failure;
    const double started = run_seconds();
    size_t n_window = session->n_context;
    int status, code = run_task_files_read(&session->files, &text, &failure);

    if (code == 0)
        code = run_session_encode(session, text.bytes ? text.bytes : "", text.length,
                                  session->options->is_special, &ids, &failure);
    if (code == 0 && text.length == 0)
        code = run_fail_elsewhere(&failure, -EINVAL, "%s: the text is empty",
                                  session->files.input_name);
    if (code == 0 && (ids.n < SMALLEST_WINDOW || n_window < SMALLEST_WINDOW))
        code = refuse_window(session, ids.n < n_window ? ids.n : n_window, &failure);
    if (code == 0) {
        n_window = ids.n < n_window ? ids.n : n_window;
        code = score_text(session, &ids, n_window, &score, &failure);
    }
    if (code == 0)
        status =
            print_perplexity(session, &score, n_window, ids.n / n_window, run_seconds() - started);
    else
        status = run_session_complain(session, code, &failure);
    run_ids_free(&ids);
    gguf_buffer_free(&text);
    return status;
}
