/*
 * Vocabularies in files from before GGUF: for each token a u32 length and its bytes, which are the
 * text that it stands for, and in some files an f32 score.
 */
#ifndef GGUFS_GGUF_OLD_VOCABULARY_H
#define GGUFS_GGUF_OLD_VOCABULARY_H

#include "gguf/cursor.h"
#include "gguf/model.h"

struct gguf_old_vocabulary {
    const uint8_t *bytes; /* of all tokens, in the header's copy */
    uint64_t size_bytes;
    uint64_t file_offset;
    struct gguf_encoding encoding;
    uint64_t n_tokens;
    bool has_scores;
};

/* Limit of the memory for a vocabulary. Real ones take less than a tenth of it. */
#define GGUF_MAX_VOCABULARY_BYTES (64u << 20)

/*
 * Move the cursor past n_tokens tokens and record their place. Returns 0, or a negative errno with
 * the reason in `report`.
 */
int gguf_old_vocabulary_read(struct gguf_cursor *cursor, uint64_t n_tokens, bool has_scores,
                             struct gguf_old_vocabulary *vocabulary, struct gguf_report *report);

/*
 * Add the keys tokenizer.ggml.*, with the tokens as GGUF writes them. `tokenizer` is "llama":
 * U+2581 for spaces, <0xXX> for the tokens that are single bytes, the types of all; or "gpt2": a
 * visible character for every byte. Returns 0, or a negative errno with the reason in `report`.
 */
int gguf_old_vocabulary_add_keys(struct gguf_model *model, const char *tokenizer,
                                 const struct gguf_old_vocabulary *vocabulary,
                                 struct gguf_report *report);

#endif
