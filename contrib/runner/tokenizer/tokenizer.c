#include "contrib/runner/tokenizer/tokenizer.h"

#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL "tokenizer.ggml.model"

#define MAX_TEXT_BYTES ((size_t)1 << 30)

/* Longer added tokens are never matched. */
#define MAX_ADDED_BYTES 512

/* Tokens with this score or a lower one are not searched for. */
#define NO_SCORE (-2000)

/* Append the longest token that the text begins with, again and again. */
static int encode_longest(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                          struct run_ids *ids)
{
    for (size_t at = 0; at < length;) {
        const struct run_prefix *token =
            run_prefix_trie_longest(&tokenizer->tokens, text + at, length - at, NULL);
        const int32_t id = token ? token->id : tokenizer->special.unk;

        if (id >= 0)
            run_ids_add(ids, id);
        at += token ? token->length : 1;
    }
    return 0;
}

static const struct run_tokenizer_kind kinds[] = {
    {"llama", run_spm_open, run_spm_encode, gguf_space_marks_decode, RUN_SEARCH_NOTHING},
    {"gpt2", run_byte_pair_open, run_byte_pair_encode, gguf_alphabet_decode, RUN_SEARCH_NOTHING},
    {"gemma4", run_byte_pair_open, run_byte_pair_encode, gguf_alphabet_decode, RUN_SEARCH_NOTHING},
    {"bert", run_wordpiece_open, run_wordpiece_encode, gguf_space_marks_decode, RUN_SEARCH_TEXTS},
    {"rwkv", NULL, encode_longest, gguf_token_unescape, RUN_SEARCH_PIECES},
    {"plamo2", run_plamo_open, run_plamo_encode, NULL, RUN_SEARCH_TEXTS},
};

void run_tokenizer_add_note(struct run_tokenizer *tokenizer, const char *format, ...)
{
    const size_t length = strlen(tokenizer->note);
    const char *between = length > 0 && length + 2 < RUN_NOTE_BYTES ? "; " : "";
    char *end = stpcpy(tokenizer->note + length, between);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(end, (size_t)(tokenizer->note + RUN_NOTE_BYTES - end), format, arguments);
    va_end(arguments);
}

/* ---- opening ---- */

static size_t decode_token(const struct run_tokenizer *tokenizer, uint32_t id, char *out)
{
    const uint8_t type = tokenizer->vocabulary.types[id];
    uint32_t length;
    const char *text = run_vocabulary_text(&tokenizer->vocabulary, id, &length);
    uint8_t byte;

    switch (type) {
    case GGUF_TOKEN_CONTROL:
    case GGUF_TOKEN_UNKNOWN:
    case GGUF_TOKEN_USER_DEFINED:
        break;
    case GGUF_TOKEN_BYTE:
        if (gguf_byte_token_parse(text, length, &byte)) {
            *out = (char)byte;
            return 1;
        }
        /* fall through */
    default:
        if (tokenizer->decode)
            return tokenizer->decode(text, length, out);
    }
    memcpy(out, text, length);
    return length;
}

static int make_pieces(struct run_tokenizer *tokenizer)
{
    const uint32_t n = tokenizer->vocabulary.n;
    uint32_t at = 0;

    tokenizer->pieces = malloc(tokenizer->vocabulary.starts[n] + 1);
    tokenizer->piece_starts = calloc(n + 1, sizeof *tokenizer->piece_starts);
    if (!tokenizer->pieces || !tokenizer->piece_starts)
        return -ENOMEM;
    for (uint32_t id = 0; id < n; id++) {
        at += (uint32_t)decode_token(tokenizer, id, tokenizer->pieces + at);
        tokenizer->piece_starts[id + 1] = at;
    }
    return 0;
}

/* Collect the tokens that are searched for in a text. */
static int collect_tokens(struct run_tokenizer *tokenizer)
{
    const struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    int code = 0;

    for (uint32_t id = 0; code == 0 && id < vocabulary->n; id++) {
        const bool is_user = vocabulary->types[id] == GGUF_TOKEN_USER_DEFINED;
        const bool is_control = run_vocabulary_is_control(vocabulary, id);
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if ((is_user || is_control) && length <= MAX_ADDED_BYTES)
            code = run_prefix_trie_add(&tokenizer->added, text, length, (int32_t)id);
        if (code < 0 || is_control || tokenizer->kind->search == RUN_SEARCH_NOTHING ||
            (vocabulary->scores &&
             (vocabulary->types[id] == GGUF_TOKEN_BYTE || !(vocabulary->scores[id] > NO_SCORE))))
            continue;
        if (tokenizer->kind->search == RUN_SEARCH_PIECES) {
            text = tokenizer->pieces + tokenizer->piece_starts[id];
            length = tokenizer->piece_starts[id + 1] - tokenizer->piece_starts[id];
        }
        code = run_prefix_trie_add(&tokenizer->tokens, text, length, (int32_t)id);
    }
    run_prefix_trie_sort(&tokenizer->added);
    run_prefix_trie_sort(&tokenizer->tokens);
    return code;
}

/* Open everything after the vocabulary. */
static int open_kind(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                     struct run_failure *failure)
{
    const struct gguf_tokenizer_defaults *defaults =
        gguf_tokenizer_defaults_find(tokenizer->kind->model);
    int code;

    tokenizer->special = defaults->ids;
    tokenizer->is_space_added =
        run_metadata_is_true(metadata, "tokenizer.ggml.add_space_prefix", defaults->is_space_added);
    tokenizer->decode = tokenizer->kind->decode;
    tokenizer->marks = calloc(tokenizer->vocabulary.n, sizeof *tokenizer->marks);
    if (!tokenizer->marks)
        return run_fail_memory(failure);
    if (!run_metadata_has(metadata, "tokenizer.ggml.token_type"))
        run_tokenizer_add_note(tokenizer, "no tokenizer.ggml.token_type: only tokens with "
                                          "well-known texts are control tokens");
    code = run_special_tokens_find(tokenizer, metadata, failure);
    if (code == 0 && tokenizer->kind->open)
        code = tokenizer->kind->open(tokenizer, metadata, failure);
    if (code < 0)
        return code;
    if (make_pieces(tokenizer) < 0 || collect_tokens(tokenizer) < 0)
        return run_fail_memory(failure);
    return 0;
}

static const struct run_tokenizer_kind *find_kind(const char *model)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].model, model) == 0)
            return &kinds[i];
    return NULL;
}

int run_tokenizer_open(const struct run_metadata *metadata, struct run_tokenizer **out,
                       struct run_failure *failure)
{
    const char *model = run_metadata_string(metadata, MODEL);
    const struct run_tokenizer_kind *kind;
    struct run_tokenizer *tokenizer;
    int code;

    *out = NULL;
    if (!model && run_metadata_has(metadata, MODEL))
        return run_fail(failure, -EINVAL, "metadata: " MODEL ": not a string");
    if (!model)
        return run_fail(failure, -ENOENT, "metadata: no " MODEL ": the model has no vocabulary");
    /* The values by which llama.cpp and others say that a model has no vocabulary. */
    if (strcmp(model, "no_vocab") == 0 || strcmp(model, "none") == 0)
        return run_fail(failure, -ENOENT, "metadata: " MODEL ": %s: the model has no vocabulary",
                        model);
    kind = find_kind(model);
    if (!kind)
        return run_fail(failure, -ENOTSUP, "metadata: " MODEL ": %.64s is not supported", model);
    tokenizer = calloc(1, sizeof *tokenizer);
    if (!tokenizer)
        return run_fail_memory(failure);
    tokenizer->kind = kind;
    code = run_vocabulary_read(metadata, &tokenizer->vocabulary, failure);
    if (code == 0)
        code = open_kind(tokenizer, metadata, failure);
    if (code < 0)
        run_tokenizer_close(tokenizer);
    else
        *out = tokenizer;
    return code;
}

void run_tokenizer_close(struct run_tokenizer *tokenizer)
{
    if (!tokenizer)
        return;
    run_vocabulary_free(&tokenizer->vocabulary);
    run_prefix_trie_free(&tokenizer->added);
    run_prefix_trie_free(&tokenizer->tokens);
    run_pre_tokenizer_close(&tokenizer->splitter);
    free(tokenizer->merges.slots);
    free(tokenizer->ranks);
    free(tokenizer->pieces);
    free(tokenizer->piece_starts);
    free(tokenizer->marks);
    free(tokenizer);
}

/* ---- asking ---- */

static bool is_token(const struct run_tokenizer *tokenizer, int32_t id)
{
    return id >= 0 && (uint32_t)id < tokenizer->vocabulary.n;
}

const char *run_tokenizer_piece(const struct run_tokenizer *tokenizer, int32_t id, size_t *length)
{
    *length = 0;
    if (!is_token(tokenizer, id))
        return "";
    *length = tokenizer->piece_starts[id + 1] - tokenizer->piece_starts[id];
    return tokenizer->pieces + tokenizer->piece_starts[id];
}

bool run_tokenizer_is_hidden(const struct run_tokenizer *tokenizer, int32_t id)
{
    return is_token(tokenizer, id) &&
           run_vocabulary_is_control(&tokenizer->vocabulary, (uint32_t)id) &&
           !(tokenizer->marks[id] & RUN_MARK_SHOWN);
}

bool run_tokenizer_is_end(const struct run_tokenizer *tokenizer, int32_t id)
{
    return is_token(tokenizer, id) && tokenizer->marks[id] & RUN_MARK_END;
}

int run_tokenizer_show(const struct run_tokenizer *tokenizer, int32_t id, bool is_control_shown,
                       struct run_utf8_stream *stream, struct gguf_buffer *out)
{
    size_t length;
    const char *piece = run_tokenizer_piece(tokenizer, id, &length);

    if (run_tokenizer_is_hidden(tokenizer, id)) {
        if (!is_control_shown)
            length = 0;
    } else if (!stream->has_begun && length > 0) {
        if (tokenizer->is_space_added && piece[0] == ' ') {
            piece++;
            length--;
        }
        stream->has_begun = true;
    }
    return run_utf8_put(stream, piece, length, out);
}

/* ---- encoding ---- */

int run_text_add_marked(struct gguf_buffer *text, const char *bytes, size_t length)
{
    int code = 0;

    for (size_t at = 0; code == 0 && at < length;) {
        const char *space = memchr(bytes + at, ' ', length - at);
        const size_t end = space ? (size_t)(space - bytes) : length;

        code = gguf_buffer_add(text, bytes + at, end - at);
        if (code == 0 && space)
            code = gguf_buffer_add_string(text, GGUF_SPACE_MARK);
        at = end + 1;
    }
    return code;
}

/* A text to encode. */
struct input {
    const char *text;
    size_t length;
    bool is_special; /* control tokens are matched outside of the spans */
    const struct run_span *spans;
    size_t n_spans;
};

/* Find the next added token from *start on. Returns NULL, and the end of the text, past the last.
 */
static const struct run_prefix *find_added(const struct run_tokenizer *tokenizer,
                                           const struct input *input, size_t *start)
{
    size_t at;
    size_t i = 0;

    for (at = *start; at < input->length; at++) {
        const struct run_prefix *token =
            run_prefix_trie_longest(&tokenizer->added, input->text + at, input->length - at, NULL);
        size_t end = input->is_special ? input->length : at; /* of a control token */

        while (i < input->n_spans && input->spans[i].end <= at)
            i++;
        if (i < input->n_spans && input->spans[i].start < end)
            end = input->spans[i].start;
        while (token && at + token->length > end &&
               run_vocabulary_is_control(&tokenizer->vocabulary, (uint32_t)token->id))
            token = run_prefix_trie_shorter(&tokenizer->added, token);
        if (token) {
            *start = at;
            return token;
        }
    }
    *start = at;
    return NULL;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int encode_parts(const struct run_tokenizer *tokenizer, const struct input *input,
                        struct run_ids *ids)
{
    const char *text = input->text;
    size_t at = 0;

    while (at < input->length) {
        size_t start = at, end;
        const struct run_prefix *found = find_added(tokenizer, input, &start);
        const uint8_t marks = found ? tokenizer->marks[found->id] : 0;
        int code = 0;

        end = start;
        while (marks & RUN_MARK_TAKES_LEFT && end > at && is_blank(text[end - 1]))
            end--;
        if (end > at)
            code = tokenizer->kind->encode(tokenizer, text + at, end - at, ids);
        if (code < 0)
            return code;
        if (found)
            run_ids_add(ids, found->id);
        at = found ? start + found->length : start;
        while (marks & RUN_MARK_TAKES_RIGHT && at < input->length && is_blank(text[at]))
            at++;
    }
    return 0;
}

static int encode(const struct run_tokenizer *tokenizer, const struct input *input, unsigned flags,
                  struct run_ids *ids, struct run_failure *failure)
{
    const struct gguf_special_ids *special = &tokenizer->special;
    int code;

    if (input->length >= MAX_TEXT_BYTES)
        return run_fail(failure, -E2BIG, "a text of %zu bytes: the limit is %zu", input->length,
                        MAX_TEXT_BYTES - 1);
    if (flags & RUN_ENCODE_BOS_EOS && special->is_bos_added && special->bos >= 0)
        run_ids_add(ids, special->bos);
    code = encode_parts(tokenizer, input, ids);
    if (flags & RUN_ENCODE_BOS_EOS && special->is_eos_added && special->eos >= 0)
        run_ids_add(ids, special->eos);
    if (code == -EOVERFLOW)
        return run_fail(failure, code,
                        "the pre-tokenizer cannot split this text: its words are too long");
    return code < 0 || ids->is_short ? run_fail_memory(failure) : 0;
}

int run_tokenizer_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                         unsigned flags, struct run_ids *ids, struct run_failure *failure)
{
    const struct input input = {text, length, flags & RUN_ENCODE_SPECIAL, NULL, 0};

    return encode(tokenizer, &input, flags, ids, failure);
}

int run_tokenizer_encode_chat(const struct run_tokenizer *tokenizer, const char *text,
                              size_t length, const struct run_span *spans, size_t n_spans,
                              struct run_ids *ids, struct run_failure *failure)
{
    const struct input input = {text, length, true, spans, n_spans};

    return encode(tokenizer, &input, 0, ids, failure);
}
