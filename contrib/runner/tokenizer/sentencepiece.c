/*
 * The kind "llama": SentencePiece's byte-pair encoding. Spaces are U+2581. Neighbours that together
 * are a token merge, the highest score first; what remains without a token is written as bytes.
 */
#include "contrib/runner/tokenizer/characters.h"
#include "contrib/runner/tokenizer/tokenizer_kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int run_spm_open(struct run_tokenizer *tokenizer, const struct run_metadata *metadata,
                 struct run_failure *failure)
{
    struct run_vocabulary *vocabulary = &tokenizer->vocabulary;
    const int code = run_vocabulary_read_scores(metadata, vocabulary, failure);

    if (code < 0)
        return code;
    if (!vocabulary->scores)
        run_tokenizer_add_note(tokenizer,
                               "no tokenizer.ggml.scores: tokens are merged in the order "
                               "of their ids, which may not be the model's");
    else if (!(tokenizer->ranks = calloc(vocabulary->n, sizeof *tokenizer->ranks)))
        return run_fail_memory(failure);
    tokenizer->is_cut_at_spaces = true;
    for (uint32_t id = 0; id < vocabulary->n; id++) {
        uint32_t length;
        const char *text = run_vocabulary_text(vocabulary, id, &length);

        if (vocabulary->scores)
            tokenizer->ranks[id] = rank_of_score(vocabulary->scores[id]);
        if (!run_vocabulary_is_control(vocabulary, id) && word_end(text, length, 0) < length)
            tokenizer->is_cut_at_spaces = false;
    }
    run_vocabulary_find_bytes(vocabulary, tokenizer->bytes);
    return 0;
}

static void add_bytes(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                      struct run_ids *ids)
{
    for (size_t i = 0; i < length; i++) {
        const int32_t id = tokenizer->bytes[(unsigned char)text[i]];

        if (id >= 0)
            run_ids_add(ids, id);
        else if (i == 0 && tokenizer->special.unk >= 0)
            run_ids_add(ids, tokenizer->special.unk);
    }
}

static int encode_part(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                       struct run_merger *merger, struct run_ids *ids)
{
    size_t n;

    if (run_merger_begin(merger, length) < 0)
        return -ENOMEM;
    for (size_t at = 0; at < length; at += n) {
        n = run_character_decode(text, length, at).n_bytes;
        run_merger_add(merger, at, n,
                       run_vocabulary_find_text(&tokenizer->vocabulary, text + at, n));
    }
    run_merger_merge(merger, tokenizer, text);
    for (int32_t i = 0; i >= 0 && length > 0; i = merger->symbols[i].next) {
        const struct run_symbol *symbol = &merger->symbols[i];

        if (symbol->id >= 0)
            run_ids_add(ids, symbol->id);
        else
            add_bytes(tokenizer, text + symbol->start, symbol->length, ids);
    }
    return 0;
}

int run_spm_encode(const struct run_tokenizer *tokenizer, const char *text, size_t length,
                   struct run_ids *ids)
{
    struct run_merger merger = {0};
    struct gguf_buffer marked = {0};
    int code = 0;

    if (tokenizer->is_space_added)
        code = gguf_buffer_add_string(&marked, GGUF_SPACE_MARK);
    if (code == 0)
        code = run_text_add_marked(&marked, text, length);
    for (size_t at = 0, end; code == 0 && at < marked.length; at = end) {
        end =
            tokenizer->is_cut_at_spaces ? word_end(marked.bytes, marked.length, at) : marked.length;
        code = encode_part(tokenizer, marked.bytes + at, end - at, &merger, ids);
    }
    run_merger_free(&merger);
    free(marked.bytes);
    return code;
}
