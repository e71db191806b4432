/*
 * Text to tokens and back, as the model's vocabulary says. Everything is made when it is opened;
 * const afterwards, so any thread may ask.
 */
#ifndef GGUFS_RUNNER_TOKENIZER_H
#define GGUFS_RUNNER_TOKENIZER_H

#include "contrib/runner/tokenizer/token_ids.h"
#include "contrib/runner/tokenizer/utf8_stream.h"
#include "contrib/runner/tree/metadata.h"

/* The id of a token that there is none of. */
#define RUN_NO_TOKEN (-1)

/* How to encode. */
enum {
    /* Match control tokens in the text, such as <|im_start|>. Leave it out for text from users and
     * files: without it, no token that the file calls a control token is ever matched. Tokens of
     * the type USER_DEFINED always are. */
    RUN_ENCODE_SPECIAL = 1,
    /* The tokens that begin and end a text are added where the model wants them. */
    RUN_ENCODE_BOS_EOS = 2,
};

/* Tokens with a task; RUN_NO_TOKEN where the vocabulary has none. */
struct run_special_ids {
    int32_t bos; /* begins a text; CLS in BERT */
    int32_t eos; /* ends a text */
    int32_t eot; /* ends a turn */
    int32_t eom; /* ends a message, the turn goes on */
    int32_t unk; /* what the vocabulary has no token for */
    int32_t sep;
    int32_t pad;
    int32_t mask;
    bool is_bos_added; /* by RUN_ENCODE_BOS_EOS */
    bool is_eos_added;
};

struct run_tokenizer;

/*
 * Reads the keys tokenizer.ggml.*; `metadata` is not needed afterwards. -ENOENT if there is no
 * vocabulary, -EINVAL if it is wrong, -ENOTSUP for a kind that is not known. A model without
 * vocabulary whose .vocab_size is 256 has the bytes as its tokens.
 */
int run_tokenizer_open(const struct run_metadata *metadata, struct run_tokenizer **out,
                       struct run_failure *failure);

/* The tokenizer of a model whose 256 tokens are the bytes, which no key may tell. */
int run_tokenizer_open_bytes(struct run_tokenizer **out, struct run_failure *failure);

void run_tokenizer_close(struct run_tokenizer *tokenizer);

/* What a user should know, such as a pre-tokenizer that is not known and was replaced; "" if there
 * is nothing. One line, kept by the tokenizer. */
const char *run_tokenizer_note(const struct run_tokenizer *tokenizer);

/* The number of tokens. All functions take any id; those outside are no tokens. */
size_t run_tokenizer_size(const struct run_tokenizer *tokenizer);

const struct run_special_ids *run_tokenizer_special(const struct run_tokenizer *tokenizer);

/*
 * Appends the tokens of the text to `ids`; on failure it may have appended some. Malformed UTF-8 is
 * taken byte by byte. -E2BIG for texts of 1 GiB or more, -EOVERFLOW for one that the
 * pre-tokenizer's expressions cannot split within the limits of PCRE2.
 */
int run_tokenizer_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         unsigned flags, struct run_ids *ids, struct run_failure *failure);

/* The bytes that a token stands for, which need not be whole characters nor end with a NUL; for a
 * control token the text that it is known by. Kept by the tokenizer. */
const char *run_tokenizer_piece(const struct run_tokenizer *tokenizer, int32_t id, size_t *length);

/*
 * Return true for a control token that is not part of the text that readers see. A few control
 * tokens are: those that divide what gpt-oss says. That says nothing about input, in which a
 * control token is only ever matched with RUN_ENCODE_SPECIAL.
 */
bool run_tokenizer_is_hidden(const struct run_tokenizer *tokenizer, int32_t id);

/* Whether a model that gives this token has said everything: the end of a text, turn or message. */
bool run_tokenizer_is_end(const struct run_tokenizer *tokenizer, int32_t id);

/* The token of that text, as the vocabulary writes it, or RUN_NO_TOKEN. */
int32_t run_tokenizer_find(const struct run_tokenizer *tokenizer, const char *text);

/* Whether encoding puts a space before the text, which is not in the text of the first token. */
bool run_tokenizer_adds_space(const struct run_tokenizer *tokenizer);

/*
 * Gives the token to the stream, which was begun with run_utf8_begin(), and what can be shown now
 * to the caller, as run_utf8_put() does. Hidden tokens give nothing, or with `is_control_shown`
 * their text. The space that encoding adds is left out at the start of a text.
 */
int run_tokenizer_show(const struct run_tokenizer *tokenizer, int32_t id, bool is_control_shown,
                       struct run_utf8_stream *stream, const char **out, size_t *out_length);

#endif
