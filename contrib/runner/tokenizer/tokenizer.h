/*
 * Text to tokens and back, with the model's vocabulary. A tokenizer never changes after opening, so
 * any number of threads may use it.
 */
#pragma once

#include "contrib/runner/tokenizer/bpe.h"
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/pre_tokenizer.h"
#include "contrib/runner/tokenizer/prefix_trie.h"
#include "contrib/runner/tokenizer/token_ids.h"
#include "contrib/runner/tokenizer/token_vocabulary.h"
#include "contrib/runner/tree/metadata.h"
#include "gguf/models/tokens.h"

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

/*
 * Write the bytes of an ordinary token, at most as many as its text has, and return their number.
 */
typedef size_t run_token_decoder(const char *text, size_t length, char *out);

/* Size of the notes of a tokenizer, with the NUL. */
#define RUN_NOTE_BYTES 1024

struct run_tokenizer {
    const struct run_tokenizer_kind *kind;
    struct run_vocabulary vocabulary;
    struct gguf_special_ids special;
    bool is_space_added;          /* before a text, which the first token does not show */
    run_token_decoder *decode;    /* NULL: the bytes are the text */
    char *pieces;                 /* texts of all tokens, concatenated */
    uint32_t *piece_starts;       /* n + 1 offsets in `pieces` */
    uint8_t *marks;               /* one enum run_token_mark set per token */
    struct run_prefix_trie added; /* control tokens and USER_DEFINED ones */
    /*
     * Notes to the user, for instance that an unknown pre-tokenizer was replaced, separated by
     * semicolons. They may contain any bytes of a model.
     */
    char note[RUN_NOTE_BYTES];

    /* Parts that a kind may have. */
    struct run_prefix_trie tokens; /* all that text becomes */
    int32_t bytes[256];            /* the tokens of single bytes, or RUN_NO_TOKEN */
    struct run_merge_table merges; /* without it, two tokens merge if they are one together */
    uint32_t *ranks;       /* then: by token; lower ranks merge first; NULL: ids are ranks */
    bool is_cut_at_spaces; /* in no token does anything precede a space: words merge one by one */
    const struct gguf_pretokenizer *pretokenizer;
    struct run_pre_tokenizer splitter;
    bool is_lowered, is_stripped; /* letters become small; accents are removed */
};

/*
 * Make a tokenizer from the keys tokenizer.ggml.*; `metadata` may be freed afterwards. Returns 0,
 * -ENOENT if the model has no vocabulary, -EINVAL if it is wrong, or -ENOTSUP for an unknown kind.
 */
int run_tokenizer_open(const struct run_metadata *metadata, struct run_tokenizer **out,
                       struct run_failure *failure);

void run_tokenizer_close(struct run_tokenizer *tokenizer);

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
 * Return the bytes that a token stands for, or the text of a control token; "" if no token has
 * the id, as for all ids below. They may be part of a character and do not end with a NUL. Owned by
 * the tokenizer.
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

/*
 * Decode a token into a stream, and append the text that can be shown now to `out`. A hidden token
 * gives nothing, or its text if `is_control_shown`. The space that encoding adds is left out at the
 * start of a text. Returns 0 or -ENOMEM.
 */
int run_tokenizer_show(const struct run_tokenizer *tokenizer, int32_t id, bool is_control_shown,
                       struct run_utf8_stream *stream, struct gguf_buffer *out);
