/* Tokens as text: written to stdout as soon as no stop text can begin in it, or kept for later. */
#ifndef GGUFS_RUNNER_TEXT_OUTPUT_H
#define GGUFS_RUNNER_TEXT_OUTPUT_H

#include "gguf/support/buffer.h"
#include "contrib/runner/tokenizer/tokenizer.h"

/*
 * Write text of a model to stdout and flush it. A file or a pipe gets the bytes as they are. On a
 * terminal, what could be a command to it is escaped: all control characters but newline and tab,
 * and bytes that are not UTF-8. Returns 0 or a negative errno, -EINTR
 * if an interrupt was deferred and nobody reads.
 */
int run_write_text(const char *bytes, size_t length);

struct run_output {
    const struct run_tokenizer *tokenizer;
    bool is_control_shown;
    bool is_kept; /* in `text`, and not written */

    /* Generation ends before any of these texts. */
    const char *const *stops;
    size_t n_stops;

    struct gguf_buffer text; /* all that was written or kept */
    struct gguf_buffer held; /* may be the beginning of a stop text */
    struct run_utf8_stream stream;
};

/* Begin a text, or continue one that the reader has seen. */
void run_output_begin(struct run_output *output, bool is_at_start);

/* Write bytes as valid UTF-8, without looking for stop texts. */
int run_output_bytes(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure);

/* Write the token, up to a stop text; `*is_stopped` becomes true if there is one. -EIO if stdout
 * fails, -EINTR if Ctrl-C interrupted the write. */
int run_output_token(struct run_output *output, int32_t id, bool *is_stopped,
                     struct run_failure *failure);

/* Write what was held back, unless a stop text was found. */
int run_output_end(struct run_output *output, struct run_failure *failure);

void run_output_free(struct run_output *output);

#endif
