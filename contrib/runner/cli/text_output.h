/*
 * Decodes tokens to text, and writes it to stdout as soon as it cannot begin a stop text, or keeps
 * it.
 */
#pragma once

#include "contrib/runner/chat/answer.h"
#include "contrib/runner/tokenizer/tokenizer.h"
#include "gguf/support/arrays.h"

/* Write what printf() and the like have buffered. Returns 0 or -EIO. */
int run_flush_stdout(struct run_failure *failure);

/* Print `before` and a string of JSON, or null if memory is too short. */
void run_print_json_string(const char *before, const char *bytes, size_t length);

/* Write a line break to stdout. Returns 0, or as run_output_token(). */
int run_output_newline(struct run_failure *failure);

struct run_output {
    const struct run_tokenizer *tokenizer;
    bool is_control_shown;
    bool is_kept; /* kept in `text` instead of written */

    /* Generation ends before any of these texts. */
    const char *const *stops;
    size_t n_stops;

    const struct run_thought_marks *marks; /* between them, text is dimmed on a terminal; or NULL */
    bool is_dim;
    size_t switched; /* the length of `raw` when is_dim changed */

    struct gguf_buffer raw;  /* the same, with the texts of control tokens; may not be UTF-8 */
    struct gguf_buffer text; /* everything that was written or kept */
    struct gguf_buffer held; /* bytes that may begin a stop text */
    struct run_utf8_stream stream;
};

/* Start a text, or continue one that the reader has seen. */
void run_output_begin(struct run_output *output, bool is_at_start);

/* Write bytes as valid UTF-8, without looking for stop texts. */
int run_output_bytes(struct run_output *output, const char *bytes, size_t length,
                     struct run_failure *failure);

/*
 * Write the token, up to a stop text. Sets `*is_stopped` if there is one. -EIO if stdout fails,
 * -EINTR if Ctrl-C interrupted the write.
 */
int run_output_token(struct run_output *output, int32_t id, bool *is_stopped,
                     struct run_failure *failure);

/* Write the text of a token that ends the text, which `raw` does not get. Returns as above. */
int run_output_end_token(struct run_output *output, int32_t id, struct run_failure *failure);

/* Write the bytes held back, unless a stop text was found. */
int run_output_end(struct run_output *output, struct run_failure *failure);

void run_output_free(struct run_output *output);

/*
 * Texts that end a generation. Bytes that may begin one of the texts are held back until the next
 * bytes decide; all other bytes pass through.
 *
 * Search the `length` bytes that were not passed on yet. Returns true if a text was found. Stores
 * in `*n_free` the number of first bytes that can be passed on: up to the earliest text found, or
 * else up to a possible beginning of one. Empty texts are never found.
 */
bool run_stop_texts_find(const char *const *texts, size_t n_texts, const char *bytes, size_t length,
                         size_t *n_free);
