/* Parts of the JSON that Hugging Face's tokenizers read. The vocabulary must be loaded. */
#pragma once

#include "fs/tree/hf/vocabulary_index.h"
#include "fs/tree/output/sink.h"

struct fs_tree;

/*
 * Return the vocabulary of a tree with its index, or NULL if it cannot be loaded; the sink then has
 * the error.
 */
const struct fs_vocabulary *fs_tokenizer_load(const struct fs_tree *tree, struct fs_sink *sink);

/* Write a string with its quotes. */
void fs_tokenizer_string(struct fs_sink *sink, const char *string);

/* Write true or false. */
void fs_tokenizer_bool(struct fs_sink *sink, bool is_true);

/* Return true if there is a token of the type BYTE for each byte. */
bool fs_tokenizer_has_all_bytes(const struct fs_vocabulary *vocabulary);

/*
 * Return true if tokenizing can produce the token: `text`, its text, is UTF-8, not empty and, in
 * the notation of tokenizer.json, not equal to the text of an earlier token.
 */
bool fs_tokenizer_has_own_text(const struct fs_vocabulary *vocabulary, uint32_t id,
                               struct gguf_string text);

/*
 * Write the token's text as JSON, in the notation of tokenizer.json. A token that no text can
 * become, because its own is empty, not UTF-8, or equal to the text of an earlier token, or in that
 * notation to the text of another token, gets a text that is unique.
 */
void fs_tokenizer_token(const struct fs_vocabulary *vocabulary, uint32_t id, struct fs_sink *sink);

/* Write the members "normalizer" to "decoder". */
void fs_tokenizer_write_pipeline(const struct fs_vocabulary *vocabulary, struct fs_sink *sink);

/* Write the value of "model", with the vocabulary and the merges. */
void fs_tokenizer_write_model(const struct fs_vocabulary *vocabulary, struct fs_sink *sink);
