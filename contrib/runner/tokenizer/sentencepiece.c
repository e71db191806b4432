/*
 * The kind "llama": SentencePiece's byte-pair encoding. Spaces are U+2581. Neighbours that together
 * are a token merge, the highest score first; what remains without a token is written as bytes.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/bpe.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <stdlib.h>
#include <string.h>

struct spm {
    uint32_t *ranks; /* by token; lower ranks merge first */
    int32_t bytes[256];
    /* in no token does anything precede a space: words can be merged one by one */
    bool is_cut_at_spaces;
};

/* Return a rank that is lower the higher the score is. */
static uint32_t rank_of_score(float score)
{
    uint32_t bits;

    score += 0.0f; /* turns -0 into 0 */
    memcpy(&bits, &score, sizeof bits);
    return bits & 0x80000000u ? bits : 0x7fffffffu - bits;
}

/* Return the end of the word that begins at `at`: spaces, and what follows up to the next space. */
static size_t word_end(const char *text, size_t length, size_t at)
{
    bool is_behind_other = false;

    while (at < length) {
        const bool is_space = length - at >= GGUF_SPACE_MARK_BYTES &&
                              memcmp(text + at, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES) == 0;

        if (is_space && is_behind_other)
            break;
        is_behind_other = !is_space;
        at += is_space ? GGUF_SPACE_MARK_BYTES : 1;
    }
    return at;
}

static int open_spm(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                    struct run_failure *failure)
{
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    struct spm *spm = calloc(1, sizeof *spm);
    int code;

    tokenizer->state = spm;
    if (!spm)
        return run_fail_memory(failure);
    code = run_vocabulary_read_scores(metadata, vocabulary, failure);
    if (code < 0)
        return code;
    if (!vocabulary->scores)
        run_tokenizer_add_note(tokenizer,
                               "no tokenizer.ggml.scores: tokens are merged in the order "
                               "of their ids, which may not be the model's");
    spm->ranks = calloc(vocabulary->n, sizeof *spm->ranks);
    if (!spm->ranks)
        return run_fail_memory(failure);
    spm->is_cut_at_spaces = true;
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        spm->ranks[id] = vocabulary->scores ? rank_of_score(vocabulary->scores[id]) : id;
        if (!run_vocabulary_is_control(vocabulary, id) && word_end(text, length, 0) < length)
            spm->is_cut_at_spaces = false;
    }
    run_vocabulary_find_bytes(vocabulary, spm->bytes);
    return 0;
}

static void close_spm(void *state)
{
    struct spm *spm = state;

    free(spm->ranks);
    free(spm);
}

static bool find_pair(const void *context, const char *text, const struct run_symbol *left,
                      const struct run_symbol *right, uint32_t *rank, int32_t *id)
{
    const struct run_tokenizer *tokenizer = context;
    const struct spm *spm = tokenizer->state;

    *id = run_vocabulary_find_text(&tokenizer->vocabulary, text + left->start,
                                   (size_t)left->length + right->length);
    if (*id < 0)
        return false;
    *rank = spm->ranks[*id];
    return true;
}

static int add_bytes(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                     struct run_ids *ids)
{
    const struct spm *spm = tokenizer->state;
    int code = 0;

    for (size_t i = 0; code == 0 && i < length; i++) {
        const int32_t id = spm->bytes[(unsigned char)text[i]];

        if (id >= 0)
            code = run_ids_add(ids, id);
        else if (i == 0 && tokenizer->special.unk >= 0)
            code = run_ids_add(ids, tokenizer->special.unk);
    }
    return code;
}

static int encode_part(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                       struct run_merger *merger, struct run_ids *ids)
{
    int code = 0;

    run_merger_begin(merger);
    for (size_t at = 0; code == 0 && at < length;) {
        const size_t n = run_character_decode(text, length, at).n_bytes;

        code = run_merger_add(merger, at, n,
                              run_vocabulary_find_text(&tokenizer->vocabulary, text + at, n));
        at += n;
    }
    if (code == 0)
        code = run_merger_merge(merger, text, find_pair, tokenizer);
    for (int32_t i = 0; code == 0 && i >= 0 && length > 0; i = merger->symbols[i].next) {
        const struct run_symbol *symbol = &merger->symbols[i];

        code = symbol->id >= 0 ? run_ids_add(ids, symbol->id)
                               : add_bytes(tokenizer, text + symbol->start, symbol->length, ids);
    }
    return code;
}

static int encode_spm(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                      bool is_first, struct run_ids *ids)
{
    const struct spm *spm = tokenizer->state;
    struct run_merger merger = {0};
    struct gguf_buffer marked = {0};
    int code = 0;

    if (is_first && tokenizer->is_space_added)
        code = gguf_buffer_add(&marked, GGUF_SPACE_MARK, GGUF_SPACE_MARK_BYTES);
    if (code == 0)
        code = run_text_add_marked(&marked, text, length);
    for (size_t at = 0; code == 0 && at < marked.length;) {
        const size_t end =
            spm->is_cut_at_spaces ? word_end(marked.bytes, marked.length, at) : marked.length;

        code = encode_part(tokenizer, marked.bytes + at, end - at, &merger, ids);
        at = end;
    }
    run_merger_free(&merger);
    free(marked.bytes);
    return code;
}

const struct run_tokenizer_kind run_kind_llama = {
    .model = "llama",
    .open = open_spm,
    .close = close_spm,
    .encode = encode_spm,
    .decode = run_decode_space_marks,
};
