/*
 * Text to tokens and back, with the model's vocabulary. A tokenizer never changes after opening, so
 * any number of threads may use it.
 */
#pragma once

#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/token_ids.h"
#include "contrib/runner/tree/metadata.h"
#include "gguf/models/special_ids.h"

#define RUN_NO_TOKEN GGUF_NO_TOKEN

/* Flags for encoding. */
enum {
    /*
     * Match control tokens in the text, for instance <|im_start|>. Do not set it for text from
     * users and files: without it, no token that the file calls a control token is ever matched.
     * Tokens of the type USER_DEFINED are always matched.
     */
    RUN_ENCODE_SPECIAL = 1,
    /* Add the tokens that begin and end a text, if the model wants them. */
    RUN_ENCODE_BOS_EOS = 2,
};

struct run_tokenizer;

/*
 * Make a tokenizer from the keys tokenizer.ggml.*; `metadata` may be freed afterwards. A model
 * without a vocabulary whose .vocab_size is 256 gets the bytes as its tokens. Returns 0, -ENOENT if
 * the model has no vocabulary, -EINVAL if it is wrong, or -ENOTSUP for an unknown kind.
 */
int run_tokenizer_open(const struct run_metadata *metadata, struct run_tokenizer **out,
                       struct run_failure *failure);

/* Make the tokenizer for a model whose 256 tokens are the bytes and whose keys do not say so. */
int run_tokenizer_open_bytes(struct run_tokenizer **out, struct run_failure *failure);

void run_tokenizer_close(struct run_tokenizer *tokenizer);

/*
 * Return the notes to the user, for instance that an unknown pre-tokenizer was replaced, separated
 * by semicolons, or "". They may contain any bytes of a model. Owned by the tokenizer.
 */
const char *run_tokenizer_note(const struct run_tokenizer *tokenizer);

/* Return the number of tokens. All functions accept any id; one out of range is not a token. */
size_t run_tokenizer_size(const struct run_tokenizer *tokenizer);

const struct gguf_special_ids *run_tokenizer_special(const struct run_tokenizer *tokenizer);

/*
 * Append the tokens of a text to `ids`; on failure, some may have been appended. Malformed UTF-8 is
 * encoded byte by byte. Returns 0, -E2BIG for a text of 1 GiB or more, or -EOVERFLOW for one that
 * the pre-tokenizer cannot split within PCRE2's limits.
 */
int run_tokenizer_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         unsigned flags, struct run_ids *ids, struct run_failure *failure);

/* Bytes [start, end) of a text. */
struct run_span {
    size_t start, end;
};

/*
 * The same with RUN_ENCODE_SPECIAL, for a rendered chat template: no control token is matched that
 * has a byte inside one of the `n_spans` spans. They are the messages' text, in order.
 */
int run_tokenizer_encode_chat(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, const struct run_span *spans, size_t n_spans,
                              struct run_ids *ids, struct run_failure *failure);

/*
 * Return the bytes that a token stands for, or the text of a control token. They may be part of a
 * character and do not end with a NUL. Owned by the tokenizer.
 */
const char *run_tokenizer_piece(const struct run_tokenizer *tokenizer, int32_t id, size_t *length);

/*
 * Return true for a control token that readers should not see. A few control tokens are not hidden,
 * for instance the separators in gpt-oss's output. This concerns output only: in input, a control
 * token is matched only with RUN_ENCODE_SPECIAL.
 */
bool run_tokenizer_is_hidden(const struct run_tokenizer *tokenizer, int32_t id);

/* Return true if this token ends the model's answer: the end of a text, turn or message. */
bool run_tokenizer_is_end(const struct run_tokenizer *tokenizer, int32_t id);

/* Return true if encoding adds a space before the text that the first token does not show. */
bool run_tokenizer_adds_space(const struct run_tokenizer *tokenizer);

/*
 * Decode a token into a stream, and append the text that can be shown now to `out`. A hidden token
 * gives nothing, or its text if `is_control_shown`. The space that encoding adds is left out at the
 * start of a text. Returns 0 or -ENOMEM.
 */
int run_tokenizer_show(const struct run_tokenizer *tokenizer, int32_t id, bool is_control_shown,
                       struct run_utf8_stream *stream, struct gguf_buffer *out);
