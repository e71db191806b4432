#include "contrib/runner/cli/text_output.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/cli/run_signals.h"
#include "gguf/support/safe_print.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Time to wait for the reader of a pipe before checking for an interrupt. */
#define PAUSE_MS 100

/* Wait until a write of PIPE_BUF bytes does not block. -EINTR if an interrupt was deferred, which
 * a signal handler on any thread may have seen: hence the time limit. */
static int wait_until_writable(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    int n;

    while ((n = poll(&out, 1, PAUSE_MS)) == 0 || (n < 0 && errno == EINTR))
        if (run_signals_is_interrupted())
            return -EINTR;
    return 0;
}

int run_flush_stdout(struct run_failure *failure)
{
    return fflush(stdout) == 0 && !ferror(stdout)
               ? 0
               : run_fail_elsewhere(failure, -EIO, "cannot write to standard output: %s",
                                    strerror(errno));
}

void run_print_json_string(const char *before, const char *bytes, size_t length)
{
    struct gguf_buffer json = {0};

    fputs(before, stdout);
    if (run_json_add_string(&json, bytes, length) == 0)
        fwrite(json.bytes, 1, json.length, stdout);
    else
        fputs("null", stdout);
    gguf_buffer_free(&json);
}

/*
 * Write text of a model to stdout and flush it. A file or pipe gets the bytes unchanged. For a
 * terminal, all control characters but newline and tab, and bytes that are not UTF-8, are escaped.
 * Returns 0, -EIO, or -EINTR if Ctrl-C was pressed while a pipe was full.
 */
static int print(const char *bytes, size_t length, struct run_failure *failure)
{
    const bool is_terminal = isatty(STDOUT_FILENO);

    for (size_t at = 0, n; at < length; at += n) {
        n = length - at < PIPE_BUF || is_terminal ? length - at : PIPE_BUF;
        if (wait_until_writable() < 0)
            return run_fail(failure, -EINTR, "interrupted");
        errno = EIO; /* clears the error of an earlier write */
        if (is_terminal)
            gguf_print_safe_lines(stdout, bytes, length);
        else
            fwrite(bytes + at, 1, n, stdout);
        if (run_flush_stdout(failure) < 0)
            return -EIO;
    }
    if (length > 0)
        run_message_follows_text(bytes[length - 1] != '\n');
    return 0;
}

int run_output_newline(struct run_failure *failure)
{
    return print("\n", 1, failure);
}

/* Return true if escape sequences for colours are wanted; see no-color.org. */
static bool is_styled(void)
{
    const char *no_color = getenv("NO_COLOR");

    return (!no_color || *no_color == '\0') && isatty(STDOUT_FILENO);
}

static int show(const struct run_output *output, const char *bytes, size_t length,
                struct run_failure *failure)
{
    const bool is_dim = output->is_dim && is_styled();
    int code;

    if (is_dim)
        fputs("\033[2m", stdout);
    code = print(bytes, length, failure);
    if (is_dim) {
        fputs("\033[22m", stdout);
        fflush(stdout);
    }
    return code;
}

/* Look for the text that begins or ends dimmed text. */
static void switch_dim(struct run_output *output)
{
    const struct run_thought_marks *marks = output->marks;
    const char *mark = !marks ? NULL : output->is_dim ? marks->end : marks->begin;

    if (mark && output->raw.bytes &&
        memmem(output->raw.bytes + output->switched, output->raw.length - output->switched, mark,
               strlen(mark))) {
        output->is_dim = !output->is_dim;
        output->switched = output->raw.length;
    }
}

static int write_out(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure)
{
    if (length == 0)
        return 0;
    if (gguf_buffer_add(&output->text, bytes, length) < 0)
        return run_fail_memory(failure);
    return output->is_kept ? 0 : show(output, bytes, length, failure);
}

void run_output_begin(struct run_output *output, bool is_at_start)
{
    output->stream = (struct run_utf8_stream){.has_begun = !is_at_start};
    gguf_buffer_drop(&output->text, output->text.length);
    gguf_buffer_drop(&output->held, output->held.length);
    gguf_buffer_drop(&output->raw, output->raw.length);
    output->switched = 0;
}

int run_output_bytes(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure)
{
    return run_utf8_put(&output->stream, bytes, length, &output->held) < 0
               ? run_fail_memory(failure)
               : run_output_end(output, failure);
}

/* Write the held bytes that cannot be part of a stop text. */
static int pass_on(struct run_output *output, bool *is_stopped, struct run_failure *failure)
{
    size_t n_free;
    int code;

    *is_stopped = run_stop_texts_find(output->stops, output->n_stops, output->held.bytes,
                                      output->held.length, &n_free);
    code = write_out(output, output->held.bytes, n_free, failure);
    gguf_buffer_drop(&output->held, *is_stopped ? output->held.length : n_free);
    if (*is_stopped) { /* drop an incomplete character after the text */
        output->stream = (struct run_utf8_stream){.has_begun = true};
        run_stop_texts_find(output->stops, output->n_stops, output->raw.bytes, output->raw.length,
                            &output->raw.length);
    }
    return code;
}

int run_output_token(struct run_output *output, int32_t id, bool *is_stopped,
                     struct run_failure *failure)
{
    size_t length;
    const char *piece = run_tokenizer_piece(output->tokenizer, id, &length);
    int code;

    if (gguf_buffer_add(&output->raw, piece, length) < 0 ||
        run_tokenizer_show(output->tokenizer, id, output->is_control_shown, &output->stream,
                           &output->held) < 0)
        return run_fail_memory(failure);
    code = pass_on(output, is_stopped, failure);
    switch_dim(output);
    return code;
}

int run_output_end_token(struct run_output *output, int32_t id, struct run_failure *failure)
{
    const size_t length = output->raw.length;
    bool is_stopped;
    const int code = run_output_token(output, id, &is_stopped, failure);

    output->raw.length = length;
    return code;
}

int run_output_end(struct run_output *output, struct run_failure *failure)
{
    int code;

    if (run_utf8_end(&output->stream, &output->held) < 0)
        return run_fail_memory(failure);
    code = write_out(output, output->held.bytes, output->held.length, failure);
    gguf_buffer_drop(&output->held, output->held.length);
    return code;
}

void run_output_free(struct run_output *output)
{
    gguf_buffer_free(&output->text);
    gguf_buffer_free(&output->raw);
    gguf_buffer_free(&output->held);
}

/* Return the length of the longest end of `bytes` that is a proper prefix of `text`. */
static size_t begun_at_end(const char *text, size_t text_length, const char *bytes, size_t length)
{
    size_t n = text_length - 1 < length ? text_length - 1 : length;

    while (n > 0 && memcmp(bytes + length - n, text, n) != 0)
        n--;
    return n;
}

bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free)
{
    bool is_found = false;
    size_t longest_begun = 0;

    *n_free = length;
    for (size_t i = 0; i < n_texts; i++) {
        const size_t text_length = strlen(texts[i]);
        const char *found;
        size_t n_begun;

        if (text_length == 0 || length == 0)
            continue;
        found = memmem(bytes, length, texts[i], text_length);
        if (found && (size_t)(found - bytes) < *n_free) {
            *n_free = (size_t)(found - bytes);
            is_found = true;
        }
        n_begun = begun_at_end(texts[i], text_length, bytes, length);
        if (n_begun > longest_begun)
            longest_begun = n_begun;
    }
    if (!is_found)
        *n_free = length - longest_begun;
    return is_found;
}
