#include "contrib/runner/cli/text_output.h"

#include "contrib/runner/cli/messages.h"
#include "contrib/runner/sampling/stop_texts.h"

#include <errno.h>
#include <string.h>

void run_output_begin(struct run_output *output, bool is_at_start)
{
    run_utf8_begin(&output->stream, is_at_start);
    gguf_buffer_drop(&output->text, output->text.length);
    gguf_buffer_drop(&output->held, output->held.length);
}

static int write_out(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure)
{
    int code;

    if (length == 0)
        return 0;
    if (gguf_buffer_add(&output->text, bytes, length) < 0)
        return run_fail_memory(failure);
    code = output->is_kept ? 0 : run_write_text(bytes, length);
    if (code == 0)
        return 0;
    /* -EINTR: Ctrl-C while a pipe was full. */
    return run_fail(failure, code == -EINTR ? -EINTR : -EIO, "stdout: %s", strerror(-code));
}

int run_output_bytes(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure)
{
    const char *out;
    size_t out_length;
    int code;

    if (run_utf8_put(&output->stream, bytes, length, &out, &out_length) < 0)
        return run_fail_memory(failure);
    code = write_out(output, out, out_length, failure);
    if (code < 0)
        return code;
    if (run_utf8_end(&output->stream, &out, &out_length) < 0)
        return run_fail_memory(failure);
    return write_out(output, out, out_length, failure);
}

/* Write those of the held bytes that cannot be part of a stop text. */
static int pass_on(struct run_output *output, bool *is_stopped, struct run_failure *failure)
{
    size_t n_free;
    int code;

    *is_stopped = run_stop_texts_find(output->stops, output->n_stops, output->held.bytes,
                                      output->held.length, &n_free);
    code = write_out(output, output->held.bytes, n_free, failure);
    gguf_buffer_drop(&output->held, *is_stopped ? output->held.length : n_free);
    if (*is_stopped) /* forget the beginning of a character after it */
        run_utf8_begin(&output->stream, false);
    return code;
}

int run_output_token(struct run_output *output, int32_t id, bool *is_stopped,
                     struct run_failure *failure)
{
    const char *out;
    size_t length;

    *is_stopped = false;
    if (run_tokenizer_show(output->tokenizer, id, output->is_control_shown, &output->stream, &out,
                           &length) < 0 ||
        gguf_buffer_add(&output->held, out, length) < 0)
        return run_fail_memory(failure);
    return pass_on(output, is_stopped, failure);
}

int run_output_end(struct run_output *output, struct run_failure *failure)
{
    const char *out;
    size_t length;
    int code = write_out(output, output->held.bytes, output->held.length, failure);

    gguf_buffer_drop(&output->held, output->held.length);
    if (code < 0)
        return code;
    if (run_utf8_end(&output->stream, &out, &length) < 0)
        return run_fail_memory(failure);
    return write_out(output, out, length, failure);
}

void run_output_free(struct run_output *output)
{
    gguf_buffer_free(&output->text);
    gguf_buffer_free(&output->held);
    run_utf8_free(&output->stream);
}
