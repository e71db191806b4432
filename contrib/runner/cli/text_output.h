/*
 * Where tokens become text: on stdout as soon as it is sure, or kept for later.
 */
#ifndef GGUFS_RUNNER_TEXT_OUTPUT_H
#define GGUFS_RUNNER_TEXT_OUTPUT_H

#include "gguf/support/buffer.h"
#include "contrib/runner/tokenizer/tokenizer.h"

struct run_output {
    const struct run_tokenizer *tokenizer;
    bool is_control_shown;
    bool is_kept; /* in `text` only */

    /* Texts to end before. */
    const char *const *stops;
    size_t n_stops;

    struct gguf_buffer text; /* all that was given out */
    struct gguf_buffer held; /* what may become a stop */
    struct run_utf8_stream stream;
};

/* A text begins, or goes on behind one that the reader has seen. */
void run_output_begin(struct run_output *output, bool is_at_start);

/* Gives bytes out as valid UTF-8, past the stops. */
int run_output_bytes(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure);

/* Gives the token out, up to a stop; `*is_stopped` tells of one. -EIO if stdout does not take it,
 * -EINTR if an end was asked for before it did. */
int run_output_token(struct run_output *output, int32_t id, bool *is_stopped,
                     struct run_failure *failure);

/* Gives out what was held back, unless a stop was found. */
int run_output_end(struct run_output *output, struct run_failure *failure);

void run_output_free(struct run_output *output);

#endif
